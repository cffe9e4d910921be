// Package peer lets processes of one user reach each other while they work on tasks. A process listens at a unix
// socket of mode 0600 in a folder of mode 0700; the lock files of the tasks that it holds name the socket.
//
// A user of the same number needs no token there; the kernel reports the number. Where it does not, the folder has
// kept others out and the token decides. Any program that can write a lock file can name any socket, so Dial trusts
// only a socket that Listen could have made, and only when this user listens there.
//
// The name of a socket holds the number of its process, so that the next process that listens removes what a killed
// one left. Where the system has no such sockets, or no folder is safe, Listen returns nil and the process has no
// address: other processes then wait for its tasks.
package peer
