"""The address of the database, its clock, and the threads that use it.

Work for a caller on an event loop: ``threads.DatabaseThreads.run``, or ``threads.run_once`` where no
connection should stay open. Work of its own that lasts: ``threads.DatabaseThread``. These are daemon
threads, because an executor's threads are joined when the interpreter ends, and a database that does
not answer would keep the process from ending. Computing is for executors
(``core.sharing.fair_queue``, ``speech.audio.encoding``).
"""
