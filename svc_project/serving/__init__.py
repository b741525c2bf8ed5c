"""The server: processes, sockets, connections, and what runs beside requests."""
