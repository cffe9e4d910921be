package view

import (
	"cmp"
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/redact"
)

// CommitFacts are the facts for a suggested commit message.
type CommitFacts struct {
	Title   string   // of the task
	Prompts []string // the user's texts, the oldest first
	Done    []string // finished entries of the todo list
	Files   []api.FileDiff
}

// Bounds of a commit message, in columns and entries.
const (
	subjectMost = 72
	entriesMost = 8
	namesMost   = 6
)

// CommitMessage suggests a message for a commit of a task's changes; the same facts give the same text. The subject is the
// task's title or first prompt. The done entries follow, or else the other prompts, and then the files. The text holds no
// control characters, and nothing that git reads as a comment or trailer.
func CommitMessage(f CommitFacts) string {
	subject := ""
	for _, words := range append([]string{f.Title}, f.Prompts...) {
		if subject == "" {
			subject = subjectOf(words)
		}
	}
	changes := filesLine(f.Files)
	if subject == "" {
		subject = cutColumns(cmp.Or(changes, "Change nothing"), subjectMost)
	}
	entries, seen := f.Done, map[string]bool{strings.ToLower(subject): true}
	if len(entries) == 0 {
		entries = f.Prompts
	}
	var list []string
	for _, words := range entries {
		one := cutColumns(sentence(words), subjectMost-2)
		if one == "" || seen[strings.ToLower(one)] || strings.HasPrefix(strings.ToLower(one), strings.TrimSuffix(strings.ToLower(subject), "…")) {
			continue
		}
		seen[strings.ToLower(one)] = true
		list = append(list, "- "+one)
	}
	if more := len(list) - entriesMost; more > 0 {
		list = append(list[:entriesMost], fmt.Sprintf("- and %d more", more))
	}
	out := subject + "\n"
	if len(list) > 0 {
		out += "\n" + strings.Join(list, "\n") + "\n"
	}
	if changes != "" && changes != subject {
		out += "\n" + wrap(changes, subjectMost) + "\n"
	}
	return out
}

// subjectOf returns the first sentence of a text in the form of a commit's subject.
func subjectOf(words string) string {
	s := sentence(words)
	if r, n := utf8.DecodeRuneInString(s); n > 0 {
		s = string(unicode.ToUpper(r)) + s[n:]
	}
	return cutColumns(s, subjectMost)
}

// sentence returns the first sentence of a text, on one line, without characters that git would read as the start of
// a comment.
func sentence(words string) string {
	s := strings.Join(strings.Fields(redact.Terminal(words)), " ")
	s = strings.TrimLeft(s, "#*->` ")
	for _, end := range []string{". ", "! ", "? ", ": "} {
		if first, _, more := strings.Cut(s, end); more && utf8.RuneCountInString(first) >= 10 {
			s = first
		}
	}
	return strings.TrimRight(s, ".:;, ")
}

// cutColumns cuts a line to most characters, at a space if there is one.
func cutColumns(s string, most int) string {
	r := []rune(s)
	if len(r) <= most {
		return s
	}
	cut := string(r[:most-1])
	if i := strings.LastIndexByte(cut, ' '); i > len(cut)/2 {
		cut = cut[:i]
	}
	return strings.TrimRight(cut, " ,;:") + "…"
}

// filesLine names the files of a commit and counts its lines.
func filesLine(files []api.FileDiff) string {
	if len(files) == 0 {
		return ""
	}
	verbs := map[string]string{api.FileAdded: "Add", api.FileDeleted: "Delete", api.FileChanged: "Change", api.FileMode: "Change"}
	var parts []string
	added, removed := 0, 0
	for _, verb := range []string{"Add", "Change", "Delete"} {
		names := api.Some(files, func(f api.FileDiff) (string, bool) {
			return path.Base(strings.Join(strings.Fields(redact.Terminal(f.Path)), " ")), verbs[f.Change] == verb
		})
		if more := len(names) - namesMost; more > 0 {
			names = append(names[:namesMost], fmt.Sprintf("%d more", more))
		}
		if len(names) == 0 {
			continue
		}
		if len(parts) > 0 {
			verb = strings.ToLower(verb)
		}
		parts = append(parts, verb+" "+strings.Join(names, ", "))
	}
	for _, f := range files {
		added, removed = added+f.Added, removed+f.Removed
	}
	return strings.Join(parts, "; ") + fmt.Sprintf(" (+%d -%d)", added, removed)
}

// wrap breaks a line at spaces.
func wrap(s string, most int) string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > most {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return strings.Join(append(lines, line), "\n")
}
