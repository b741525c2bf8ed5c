"""Threads that use the database, and their connections.

Work for a caller on an event loop: ``pool.DatabaseThreads.run``, or ``pool.run_once`` where no
connection should stay open. Work of its own that lasts: ``threads.DatabaseThread``. These are daemon
threads, because an executor's threads are joined when the interpreter ends, and a database that does
not answer would keep the process from ending. Computing is for executors
(``svc_project.lib.sharing.fair_thread``, ``speech.audio.encoding``).
"""
