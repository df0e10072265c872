"""Processes that are killed at any moment, again and again, and what must be left behind.

    python -m tests.lab.kills --times 100 [threads] [writer] [grader] [live] [spark] [server]

| victim  | what runs when it is killed                   | what must hold afterwards                               |
|---------|-----------------------------------------------|---------------------------------------------------------|
| threads | a Lab on real threads, sending and consuming  | every acknowledged message is stored and consumed       |
| writer  | `mqlab traffic`                               | the same command ends with the bytes of an unkilled run |
| grader  | `mqlab grade`                                 | `--resume` ends with the grades of an unkilled run      |
| live    | the processes that let stores grow            | the stores end as they do without a kill                |
| spark   | a streaming job, with its JVM                 | each message is in the sink once                        |
| server  | `mqlab serve` under a client's load           | nothing acknowledged under synchronous flush is lost    |

`make test` kills each of them a few times, `make long` a hundred times, the streaming job fifteen times.
"""
