package workspace

import (
	"path"
	"path/filepath"
	"strings"
)

// readers are the programs whose arguments are taken as files to be read.
var readers = map[string]bool{
	"cat": true, "less": true, "more": true, "head": true, "tail": true, "grep": true, "awk": true, "sed": true,
	"get-content": true, "gc": true, "type": true, "select-string": true, "sls": true,
}

// BlockedWord gives the first word of a command line that names a file hidden by
// .rooignore and handed to a program that shows files, "" when there is none.
//
// BlockedWord examines every simple command of a line, with quotes removed, also behind a
// pipe, and redirections from a file for any program. It is a help against
// accidents, not a wall: variables, globs and other programs get past it, as does
// anything that a script does.
func (w *Workspace) BlockedWord(command string) (string, error) {
	rules, err := w.Ignore()
	if err != nil {
		return "", err
	}
	if len(rules.rules) == 0 {
		return "", nil
	}
	for _, words := range simpleCommands(command) {
		reads := false
		for i, word := range words {
			switch {
			case i == 0:
				reads = readers[strings.ToLower(path.Base(filepath.ToSlash(word.text)))]
				continue
			case !word.redirect && (!reads || strings.HasPrefix(word.text, "-")):
				continue
			case word.text == "":
				continue
			}
			p, err := w.resolve(word.text, rules)
			if err == nil && p.Ignored {
				return word.text, nil
			}
		}
	}
	return "", nil
}

type word struct {
	text     string
	redirect bool // a file that input comes from
	written  bool // a file that output goes to
}

// simpleCommands cuts a line at separators, pipes and parentheses. It keeps to
// what POSIX shells and PowerShell share; where they differ it takes the reading
// that shows more words.
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
			quoted := line[i+1 : i+1+end]
			b.WriteString(quoted)
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
