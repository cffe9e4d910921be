package workspace

import (
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
)

// Guard names folders and files, absolute, that are protected wherever they lie, with
// all that is in them: the program's own data. It is called before the workspace is
// used.
func (w *Workspace) Guard(paths ...string) {
	for _, p := range paths {
		if !filepath.IsAbs(p) {
			continue
		}
		p = filepath.Clean(p)
		w.guards = append(w.guards, p)
		if real, _, err := followLinks(p, filepath.VolumeName(p)+string(filepath.Separator),
			strings.Split(p[len(filepath.VolumeName(p)):], string(filepath.Separator))); err == nil && real != p {
			w.guards = append(w.guards, real)
		}
	}
}

// RulePaths are the names by which rules may know the path: as it was given, and where it really leads, each relative
// to the root with "/" when it is inside, absolute when not.
func (p Path) RulePaths() []string {
	if p.RealReadable == "" || p.RealReadable == p.Readable {
		return []string{p.Readable}
	}
	return []string{p.Readable, p.RealReadable}
}

// guarded reports whether a path is one of them, or below. Letter case does not count:
// on some disks it makes no difference, and a needless question costs little.
func (w *Workspace) guarded(real string) bool {
	for _, g := range w.guards {
		if below(g, real) {
			return true
		}
	}
	return false
}

// gitNames are found beside HEAD in a folder that git takes for a repository of its own.
var gitNames = map[string]bool{"config": true, "config.worktree": true, "objects": true, "refs": true, "hooks": true,
	"commondir": true, "packed-refs": true, "info": true, "worktrees": true, "modules": true}

// inRepositoryFolder reports whether a path, relative to the root, belongs to a folder that holds a
// HEAD and so may be taken for a repository, whose settings name programs.
func (w *Workspace) inRepositoryFolder(rel string) bool {
	dir := w.root
	for name := range strings.SplitSeq(filepath.ToSlash(rel), "/") {
		if gitNames[strings.ToLower(plainNames(name))] {
			if _, err := os.Lstat(filepath.Join(dir, "HEAD")); err == nil {
				return true
			}
		}
		dir = filepath.Join(dir, name)
	}
	return false
}

// below reports whether a path is a folder, or in it, in any letter case.
func below(dir, path string) bool {
	dir, path = strings.ToLower(filepath.ToSlash(dir)), strings.ToLower(filepath.ToSlash(path))
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// plainNames takes from a path what some file systems do not see in names: dots and
// blanks at the end, the name of a stream behind a colon, and letters without width.
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

// fileChangers are programs that change, move or remove the files they are given.
var fileChangers = map[string]bool{
	"rm": true, "rmdir": true, "unlink": true, "shred": true, "mv": true, "cp": true, "ln": true, "install": true,
	"tee": true, "truncate": true, "touch": true, "mkdir": true,
	"chmod": true, "chown": true, "chgrp": true, "chattr": true, "setfacl": true, "dd": true, "rsync": true, "patch": true,
	"ed": true, "ex": true, "vi": true, "vim": true, "nvim": true, "nano": true, "emacs": true,
	"del": true, "erase": true, "rd": true, "move": true, "copy": true, "xcopy": true, "robocopy": true, "ren": true,
	"remove-item": true, "move-item": true, "copy-item": true, "set-content": true, "add-content": true, "out-file": true, "new-item": true,
}

// inPlaceEditors change files only when given the option named here.
var inPlaceEditors = map[string]string{"sed": "-i", "gsed": "-i", "perl": "-i", "ruby": "-i", "awk": "-i", "gawk": "-i",
	"yq": "-i", "sort": "-o"}

// removers lose what they are given: a folder above a protected file is one, too.
var removers = map[string]bool{"rm": true, "mv": true, "shred": true, "rd": true, "del": true, "rmdir": true,
	"remove-item": true, "move": true}

// ProtectedWord gives the first word of a command line that names a protected file
// in a position where the command would change it: behind a redirection, or behind a
// program that changes files. "" when there is none. dir is where the command runs.
//
// Like BlockedWord it is a help against accidents and hasty models, and no wall:
// variables, and what scripts and other programs do, get past it.
func (w *Workspace) ProtectedWord(command, dir string) string {
	return w.protectedWord(command, dir, 3)
}

func (w *Workspace) protectedWord(command, dir string, depth int) string {
	for _, words := range simpleCommands(command) {
		changes, takes := false, false
		for i, word := range words {
			name := strings.ToLower(path.Base(filepath.ToSlash(word.text)))
			switch {
			case word.text == "":
				continue
			case word.written:
				if w.protects(word.text, dir, false) {
					return word.text
				}
				continue
			case fileChangers[name]:
				changes, takes = true, removers[name]
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
				if found := w.protectedWord(word.text, dir, depth-1); found != "" {
					return found
				}
			}
			text := word.text
			if _, value, ok := strings.Cut(text, "="); ok && (strings.HasPrefix(text, "-") || strings.HasPrefix(text, "of=")) {
				text = value // --target-directory=DIR, dd of=FILE
			} else if strings.HasPrefix(text, "-") {
				continue
			}
			if changes && w.protects(text, dir, takes) {
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
			if more, err := filepath.Glob(full); err == nil {
				found = append(found, more[:min(len(more), 1000)]...)
			}
		}
		for _, f := range found {
			p, err := w.Resolve(f)
			if err != nil {
				continue
			}
			rel, inside := within(w.root, p.Real)
			if p.Protected || inside && rel != "." && Protected(filepath.ToSlash(rel)+"/x") || takes && w.holdsProtected(p.Real) {
				return true
			}
		}
	}
	return false
}

// above: taking the folder away takes protected files with it.
func (w *Workspace) holdsProtected(real string) bool {
	if below(real, w.root) {
		return true
	}
	for _, g := range w.guards {
		if below(real, g) {
			return true
		}
	}
	return false
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
