"""Settings of Spark for JVMs that live as long as a test: what costs more than all the rows of most tests' stores."""

PLANS_AS_THEY_ARE = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
"""No Java code for each query, and no plans that change on the way."""

BY_ITSELF = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.adaptive.enabled": "true",
}

NO_LINES_IN_ERRORS = {"spark.python.sql.dataFrameDebugging.enabled": "false"}
"""PySpark asks the JVM ten times for each column of a query, so that an error can name its line."""

OF_ALL_TESTS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of the JVM of all tests that share one."""
