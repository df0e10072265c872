"""Settings of Spark for JVMs that live as long as a test: what costs more than all the rows of most tests' stores."""

PLANS_AS_THEY_ARE = {
    "spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}  # fmt: skip
"""No Java code for each query, and no plans that change on the way."""

BY_ITSELF = {
    "spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.adaptive.enabled": "true",
}  # fmt: skip

NO_LINES_IN_ERRORS = {"spark.python.sql.dataFrameDebugging.enabled": "false"}
"""PySpark asks the JVM ten times for each column of a query, so that an error can name its line."""

OF_ALL_TESTS = (
    # The first compiler alone, which has little room for its code by itself and would compile again.
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m "
    # Memory at once: by itself the JVM looks for garbage forty times while it takes as much little by little.
    "-XX:+UseSerialGC -Xms1g -Xmn512m "
    # Calls from Python are not each compiled to a class of its own, and the JVM is not copied for a chmod.
    "-Dsun.reflect.inflationThreshold=100000 -Djdk.lang.Process.launchMechanism=VFORK"
)
"""Options of the JVM of all tests that share one."""
