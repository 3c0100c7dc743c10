"""Policies behind a socket: the protocol (that of vla-eval 0.8), the server, the client, and a server beside a job."""
