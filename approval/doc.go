// Package approval decides which calls of a model may run without asking.
//
// It fails closed: what it does not know asks. Three rules hold under every policy: a deny pattern beats an allow
// pattern, no policy writes a protected file, and no policy answers the model's questions.
//
// A rule may allow what the mode does not: a tool, or the files that it touches (see Rule). Rules that deny come before
// rules that ask, those before rules that allow, and all of them before the mode.
//
// A command pattern is words. It matches a simple command whose first words equal them ("git log" matches
// `git log -3`, not `git logx` and not `gitk`). The two kinds of pattern err on different sides:
//
//   - An allow pattern matches a simple command of plain words: no assignment, substitution, expansion, glob,
//     redirection to a file or control character anywhere, and no program that runs other commands. Of a known program
//     (see programs.txt) it covers the options and words that are known to be harmless; of any other program
//     its own words, and plain names of files in the workspace. A chain (&&, ||, ;) or pipe of such commands is allowed
//     when each of them is; any other line asks.
//   - A deny pattern matches anywhere in the line: in chains, pipes, substitutions and functions, behind wrappers (env,
//     sudo, xargs, sh -c, find -exec, ...), with any quoting, path or case of the program's name, with options between
//     its words. A deny of "*" matches every command. Where the words are only known when the line runs, behind a
//     wrapper, and where program text is on the line or is fed to a program, the verdict is ask, never allow. A deny
//     pattern cannot see into scripts, build tools and programs that the line starts: it guards against slips and is no
//     sandbox.
//
// Lines are read as Bash and as POSIX sh; the stricter reading counts. On Windows, where cmd.exe reads them differently,
// allow patterns match nothing.
package approval
