package workspace

import (
	"cmp"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Guard protects folders and files, given by absolute paths, with everything in them, wherever they are: the
// program's own data. Call Guard before you use the workspace.
func (w *Workspace) Guard(paths ...string) {
	for _, p := range paths {
		if !filepath.IsAbs(p) {
			continue
		}
		p = filepath.Clean(p)
		w.guards = append(w.guards, p)
		if real, _, err := followLinks(p); err == nil && real != p {
			w.guards = append(w.guards, real)
		}
	}
}

// RulePaths returns the names that rules may use for the path: the given one, and the one where it really leads, each
// relative to the root with "/" if it is inside, otherwise absolute.
func (p Path) RulePaths() []string {
	return slices.Compact([]string{p.Readable, cmp.Or(p.RealReadable, p.Readable)})
}

// guarded reports whether a path is one that Guard protects, or is below one.
func (w *Workspace) guarded(real string) bool {
	return slices.ContainsFunc(w.guards, func(g string) bool { return Below(g, real) })
}

// gitNames are names that are beside HEAD in a folder that git treats as a repository.
var gitNames = strings.Fields("config config.worktree objects refs hooks commondir packed-refs info worktrees modules")

// inRepositoryFolder reports whether a path, relative to the root, belongs to a folder that holds a HEAD, so that git
// may treat it as a repository, whose settings name programs.
func (w *Workspace) inRepositoryFolder(rel string) bool {
	dir := w.root
	for name := range strings.SplitSeq(filepath.ToSlash(rel), "/") {
		if slices.Contains(gitNames, strings.ToLower(plainNames(name))) {
			if _, err := os.Lstat(filepath.Join(dir, "HEAD")); err == nil {
				return true
			}
		}
		dir = filepath.Join(dir, name)
	}
	return false
}

// Below reports whether a path is a folder, or in it. It ignores letter case: on some disks case makes no difference,
// and a needless question or refusal costs little.
func Below(dir, path string) bool {
	dir, path = strings.ToLower(filepath.ToSlash(dir)), strings.ToLower(filepath.ToSlash(path))
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// Protected reports whether a path (relative to the root, "/" between names) is
// one that steers agents, editors or git, and so is write-protected.
func Protected(rel string) bool {
	return protected.Hides(rel, false) || protected.Hides(plainNames(rel), false)
}

// plainNames removes from a path what some file systems ignore in names: dots and blanks at the end, the name of a
// stream after a colon, and letters without width.
func plainNames(rel string) string {
	names := strings.Split(rel, "/")
	for i, n := range names {
		n = strings.Map(func(r rune) rune {
			if r >= 0x200B && r <= 0x200F || r >= 0x202A && r <= 0x202E || r >= 0x206A && r <= 0x206F || r == 0xFEFF {
				return -1
			}
			return r
		}, n)
		if at := strings.IndexByte(n, ':'); at > 0 {
			n = n[:at]
		}
		if t := strings.TrimRight(n, ". "); t != "" {
			n = t
		}
		if strings.EqualFold(n, "git~1") { // the short name of .git on Windows
			n = ".git"
		}
		names[i] = n
	}
	return strings.Join(names, "/")
}

// fileChangers are programs that change, move or remove the files in their arguments.
var fileChangers = strings.Fields("rm rmdir unlink shred mv cp ln install tee truncate touch mkdir chmod chown chgrp chattr setfacl dd " +
	"rsync scp split zip gzip gunzip bzip2 xz mkfifo patch clone init black isort fmt rustfmt format ed ex vi vim nvim nano emacs del erase rd move copy xcopy robocopy ren remove-item " +
	"move-item copy-item set-content add-content out-file new-item")

// inPlaceEditors change files only when given the option named here.
var inPlaceEditors = map[string]string{"sed": "-i", "gsed": "-i", "perl": "-i", "ruby": "-i", "awk": "-i", "gawk": "-i",
	"yq": "-i", "sort": "-o"}

// removers remove folders with everything in them: they may not get a folder above a protected file either.
var removers = strings.Fields("rm mv shred rd del rmdir remove-item move")

// ProtectedWord returns the first word of a command line that names a protected file in a position where the command
// would change it: after a redirection, or after a program that changes files. "" when there is none. dir is where
// the command runs.
//
// Like BlockedWord it guards against accidents and hasty models, and is no sandbox: it does not look into variables,
// scripts and other programs.
func (w *Workspace) ProtectedWord(command, dir string) string {
	return w.changedWord(command, dir, 3, w.protects)
}

// LinkedWord is ProtectedWord for files that lie outside the workspace, behind a link in it.
func (w *Workspace) LinkedWord(command, dir string) string {
	return w.changedWord(command, dir, 3, func(text, dir string, _ bool) bool {
		p, err := w.Resolve(w.pathOfWord(text, dir))
		return err == nil && p.LinkedOutside
	})
}

// changedWord gives the first word that names a file which the command would change and which is wanted.
func (w *Workspace) changedWord(command, dir string, depth int, wanted func(text, dir string, takes bool) bool) string {
	for _, words := range simpleCommands(command) {
		changes, takes := false, false
		for i, word := range words {
			name := strings.ToLower(path.Base(filepath.ToSlash(word.text)))
			switch {
			case word.text == "":
				continue
			case word.written:
				if wanted(word.text, dir, false) {
					return word.text
				}
				continue
			case slices.Contains(fileChangers, name):
				changes, takes = true, slices.Contains(removers, name)
				continue
			case inPlaceEditors[name] != "":
				for _, o := range words[i+1:] {
					changes = changes || strings.HasPrefix(o.text, inPlaceEditors[name]) ||
						strings.HasPrefix(o.text, "--in-place") ||
						strings.HasPrefix(o.text, "-") && !strings.HasPrefix(o.text, "--") &&
							strings.Contains(o.text, inPlaceEditors[name][1:])
				}
				continue
			}
			if depth > 0 && strings.ContainsAny(word.text, " \n;|&>") {
				if found := w.changedWord(word.text, dir, depth-1, wanted); found != "" {
					return found
				}
			}
			text := word.text
			if _, value, ok := strings.Cut(text, "="); ok && (strings.HasPrefix(text, "-") || strings.HasPrefix(text, "of=")) {
				text = value // --target-directory=DIR, dd of=FILE
			} else if strings.HasPrefix(text, "-") {
				continue
			}
			if changes && wanted(text, dir, takes) {
				return word.text
			}
		}
		if len(words) > 1 && words[0].text == "cd" && words[1].text != "-" {
			dir = w.pathOfWord(words[1].text, dir)
		}
	}
	return ""
}

// protects checks the paths that a word may mean: it expands patterns and the alternatives
// in braces.
func (w *Workspace) protects(text, dir string, takes bool) bool {
	list := []string{text}
	if strings.Contains(text, "{") {
		list = append(list, strings.FieldsFunc(text, func(r rune) bool { return r == '{' || r == '}' || r == ',' })...)
	}
	for _, one := range list {
		full := w.pathOfWord(one, dir)
		found := []string{full}
		if strings.ContainsAny(one, "*?[") {
			more, _ := filepath.Glob(full) // none when the shell's pattern is none here
			found = append(found, more[:min(len(more), 1000)]...)
		}
		for _, f := range found {
			p, err := w.Resolve(f)
			if err != nil {
				continue
			}
			rel, inside := Within(w.root, p.Real)
			if p.Protected || inside && rel != "." && Protected(filepath.ToSlash(rel)+"/x") || takes && w.holdsProtected(p.Real) {
				return true
			}
		}
	}
	return false
}

// holdsProtected reports whether removing a folder would remove protected files with it.
func (w *Workspace) holdsProtected(real string) bool {
	return Below(real, w.root) || slices.ContainsFunc(w.guards, func(g string) bool { return Below(real, g) })
}

// pathOfWord returns a word of a command as a path.
func (w *Workspace) pathOfWord(text, dir string) string {
	for _, sign := range []string{"~/", "$HOME/", "${HOME}/"} {
		if rest, ok := strings.CutPrefix(text, sign); ok || text+"/" == sign {
			if home, err := os.UserHomeDir(); err == nil {
				return filepath.Join(home, rest)
			}
		}
	}
	for _, sign := range []string{"$PWD", "${PWD}"} {
		if rest, ok := strings.CutPrefix(text, sign); ok && (rest == "" || rest[0] == '/') {
			return filepath.Join(dir, rest)
		}
	}
	if filepath.IsAbs(text) || runtime.GOOS == "windows" && filepath.VolumeName(text) != "" {
		return text
	}
	return filepath.Join(dir, text)
}

// harmlessDotFiles are hidden files from which tools only read lists and styles. Other hidden files may name programs
// or steer agents and editors. Files that are programs themselves (.js, .cjs, .ts) are not among them.
var harmlessDotFiles = strings.Fields(".gitignore .gitkeep .keep .dockerignore .npmignore .prettierignore .eslintignore " +
	".stylelintignore .helmignore .editorconfig .nvmrc .node-version .python-version .ruby-version .env.example .env.sample " +
	".prettierrc .prettierrc.json .prettierrc.yaml .prettierrc.yml .prettierrc.toml .eslintrc .eslintrc.json .eslintrc.yaml " +
	".eslintrc.yml .stylelintrc .stylelintrc.json .stylelintrc.yaml .stylelintrc.yml .markdownlint.json .markdownlint.yaml " +
	".markdownlint.yml .clang-format")

// agentInstructions are files that agents obey.
var agentInstructions = strings.Fields("agents.md agents.local.md agents.override.md agent.md claude.md claude.local.md gemini.md " +
	"qwen.md crush.md codex.md warp.md kilo.md roo.md copilot-instructions.md skill.md")

// SteersAgents reports whether a path, with "/" between names, is a hidden file, is in a hidden folder or is one that
// agents obey. Such a file may make programs run or agents act long after it was written.
func SteersAgents(name string) bool {
	name = plainNames(path.Clean(name))
	last := strings.ToLower(path.Base(name))
	if slices.Contains(agentInstructions, last) {
		return true
	}
	for dir := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(dir, ".") && dir != "." && dir != ".." && !slices.Contains(harmlessDotFiles, strings.ToLower(dir)) {
			return true
		}
	}
	return false
}

// readers are the programs whose arguments count as files to be read.
var readers = strings.Fields("cat less more head tail grep awk sed get-content gc type select-string sls")

// BlockedWord returns the first word of a command line that names a file which .rooignore hides, and which is an
// argument of a program that shows files; "" when there is none.
//
// BlockedWord examines every simple command of a line, with quotes removed, also behind a pipe, and redirections from
// a file for any program. It guards against accidents and is no sandbox: it does not look into variables, globs,
// other programs and scripts.
func (w *Workspace) BlockedWord(command string) (string, error) {
	rules, err := w.Ignore()
	if err != nil || !rules.Any() {
		return "", err
	}
	for _, words := range simpleCommands(command) {
		reads := false
		for i, word := range words {
			switch {
			case i == 0:
				reads = slices.Contains(readers, strings.ToLower(path.Base(filepath.ToSlash(word.text))))
				continue
			case word.text == "", !word.redirect && (!reads || strings.HasPrefix(word.text, "-")):
				continue
			}
			if p, err := w.resolve(word.text, rules); err == nil && p.Ignored {
				return word.text, nil
			}
		}
	}
	return "", nil
}

type word struct {
	text     string
	redirect bool // a file that is redirected to the input
	written  bool // a file that the output is redirected to
}

// simpleCommands splits a line at separators, pipes and parentheses. It relies on what POSIX shells and PowerShell
// share; where they differ it uses the reading that shows more words.
func simpleCommands(line string) [][]word {
	var all [][]word
	var cur []word
	var b strings.Builder
	inWord, redirect, written := false, false, false
	endWord := func() {
		if inWord {
			if (redirect || written) && len(cur) == 0 {
				cur = append(cur, word{}) // no program yet: `<f cat`
			}
			cur = append(cur, word{b.String(), redirect, written})
			redirect, written = false, false
		}
		b.Reset()
		inWord = false
	}
	endCommand := func() {
		endWord()
		redirect, written = false, false
		if len(cur) > 0 {
			all = append(all, cur)
		}
		cur = nil
	}
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch c {
		case ' ', '\t', '\r', '\v', '\f':
			endWord()
		case '\n', ';', '|', '&', '(', ')', '`':
			if written && !inWord && (c == '|' || c == '&') {
				continue // >| and >&
			}
			endCommand()
		case '<':
			endWord()
			redirect, written = true, false
		case '>':
			endWord()
			redirect, written = false, true
		case '\'', '"':
			inWord = true
			end := strings.IndexByte(line[i+1:], c)
			if end < 0 {
				end = len(line) - i - 1
			}
			b.WriteString(line[i+1 : i+1+end])
			i += end + 1
		case '\\':
			inWord = true
			// A backslash before a letter may be a Windows separator.
			if i+1 < len(line) && !isWordByte(line[i+1]) {
				i++
				b.WriteByte(line[i])
			} else {
				b.WriteByte('/')
			}
		default:
			inWord = true
			b.WriteByte(c)
		}
	}
	endCommand()
	return all
}

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
