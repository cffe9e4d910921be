// Package approval decides which calls of a model may run without asking.
//
// It fails closed: what it does not know asks. Three rules stand above every
// policy: a deny pattern beats an allow pattern, no policy writes a protected
// file, and no policy answers the model's questions.
//
// A command pattern is words. It matches a simple command whose first words equal
// them ("git log" matches `git log -3`, not `git logx` and not `gitk`). The two
// kinds of pattern err on different sides:
//
//   - An allow pattern matches only a line that is one simple command of plain
//     words: no chain, pipe, redirection, substitution, assignment, expansion,
//     glob or control character anywhere, no program that runs other commands,
//     and no option known to write a file or run a program. A list of dangerous
//     options is never complete; allow patterns are a convenience for people who
//     know the commands they name, not a sandbox.
//   - A deny pattern matches anywhere in the line: in chains, pipes, substitutions
//     and functions, behind wrappers (env, sudo, xargs, sh -c, find -exec, ...),
//     whatever the quoting, the path or the case of the program's name, with options
//     between its words. A deny of "*" matches every command. Where the words are
//     only known when the line runs, the verdict is ask, never allow. A deny
//     pattern cannot see into scripts and programs that the line starts.
//
// Lines are read as Bash and as POSIX sh; the stricter reading counts. On Windows,
// where cmd.exe reads them otherwise, allow patterns match nothing.
package approval
