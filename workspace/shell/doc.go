// Package shell runs one command line and leaves nothing behind.
//
// The line goes to /bin/sh -c (cmd.exe /C on Windows), not to $SHELL: the same line must mean the same on every
// machine, and a login shell's start files must not take part. It runs in a session of its own, with stdin closed and
// no controlling terminal, so that what would prompt fails at once instead of hanging. stdout and stderr share one
// pipe and keep their order.
//
// What belongs to a command: every process in its session or process group and, on Linux, every process whose
// environment carries the mark that Run set (this finds daemons that made a session of their own). When the command
// is cancelled, runs out of time or its shell exits, Run ends all of them: SIGTERM, a short grace, SIGKILL. It ends
// processes that the shell left in the background, too, and sets Result.Ended: a step of an agent owns what it
// started. Out of reach are only processes that left the session and also changed their user, cleared their
// environment or wrote over it.
//
// A caller that records Command.Mark before the start finds a command with FindMarked even if the engine is killed
// before it learns of the process. The mark is there as soon as another process can own the task: until the new
// process has its environment it still holds the engine's open files, and so its locks.
//
// PR_SET_PDEATHSIG is not used on purpose. The kernel sends that signal when the thread that forked ends, not the
// process; the Go runtime ends threads as it likes, so a healthy command could be killed at random, unless a thread
// is pinned for each command's whole life. It also does not reach grandchildren. Instead a Process is recorded when
// the command starts; after a crash of the engine Find reports whether it lives, and End ends it.
//
// Serve is for programs that live longer than a call. There a thread is pinned, and they do get that signal.
//
// Limits: only Linux has the mark (FindMarked finds nothing elsewhere); on macOS Find sees the leader only; on other
// Unix systems and on Windows Find cannot detect a reused number and answers false.
package shell
