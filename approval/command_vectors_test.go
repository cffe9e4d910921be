package approval

import (
	"path"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"github.com/roost-dev/roost/internal/testing/conformance"
)

// TestVectorsCommandApproval compares with Roo's own decisions, or with what is wanted where
// we differ by choice. That is worked out from the line and the patterns. Three rules decide:
// what a deny pattern names, word by word, is denied, and nothing else; no line runs
// unasked unless it is plain and patterns of words name each of its commands; and what Roo
// asks for we ask for.
func TestVectorsCommandApproval(t *testing.T) {
	roos := map[string]State{"auto_approve": Allow, "ask_user": Ask, "auto_deny": Deny}
	conformance.Run(t, "command_auto_approval", func(t *testing.T, c conformance.Case) (choice bool) {
		line, allowed, denied := c.Input.Str("command"), c.Input.Get("allowed").Strings(), c.Input.Get("denied").Strings()
		roo, known := roos[c.Want.Str("decision")]
		if !known {
			t.Fatalf("unknown decision %q", c.Want.Str("decision"))
		}
		want, why := ownCommand(line, allowed, denied, roo)
		if got := Command(line, allowed, denied); got.State != want {
			t.Errorf("%q: %s, want %s because %s; Roo says %s: %+v", line, got.State, want, why, roo, got)
		}
		return want != roo
	})
}

// ownCommand is what is wanted of a line, and why, when Roo decides so.
func ownCommand(line string, allowed, denied []string, roo State) (want State, why string) {
	asks := mustAsk(line, allowed, denied)
	switch {
	case names(line, denied):
		return Deny, "a pattern names one of its commands"
	case roo == Ask:
		return Ask, "Roo asks"
	case asks != "":
		return Ask, asks
	}
	return Allow, "each of its commands is allowed"
}

// names: the words of one of the patterns begin a command of the line, wherever it stands
// but in text. A program is meant in any letter case and by any path.
func names(line string, denied []string) bool {
	file, err := syntax.NewParser().Parse(strings.NewReader(strings.ReplaceAll(line, "\r", "\n")), "")
	if err != nil {
		return false
	}
	found := false
	syntax.Walk(file, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok {
			return true
		}
		var assigned, words []string
		for _, a := range call.Assigns {
			if a.Name != nil && a.Value != nil {
				assigned = append(assigned, a.Name.Value+"="+a.Value.Lit())
			}
		}
		for _, w := range call.Args {
			words = append(words, wordText(w.Parts))
		}
		for len(words) > 1 && words[0] == "sudo" {
			found = found || begins(words, denied)
			words = words[1:]
		}
		for len(words) > 1 && strings.Contains(words[0], "=") {
			assigned, words = append(assigned, words[0]), words[1:]
		}
		found = found || begins(words, denied) || len(assigned) > 0 && begins(append(assigned, words...), denied)
		return true
	})
	return found
}

func wordText(parts []syntax.WordPart) string {
	text := ""
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			text += strings.ReplaceAll(p.Value, `\`, "")
		case *syntax.SglQuoted:
			text += p.Value
		case *syntax.DblQuoted:
			text += wordText(p.Parts)
		default:
			text += "\x00"
		}
	}
	return text
}

func begins(words, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ps := strings.Fields(p)
		if len(ps) == 0 || len(words) < len(ps) {
			return false
		}
		return ps[0] == "*" || strings.EqualFold(path.Base(words[0]), path.Base(ps[0])) && slices.Equal(words[1:len(ps)], ps[1:])
	})
}

// Programs of the vectors that run what their further words name, and options that do more
// than show something.
var (
	namesNothing = []string{"sudo", "python3", "node"}
	doesMore     = map[string]string{"rm": "-rf", "sed": "-i", "npm": "--x", "git": "--dry-run", "curl": "-o", "node": "-e"}
)

// mustAsk says why a line that no pattern denies does not run unasked, "" when it does.
func mustAsk(line string, allowed, denied []string) string {
	bare, words, ok := unquoted(line)
	switch {
	case strings.TrimSpace(line) == "":
		return "it is empty"
	case !ok || strings.ContainsAny(bare, "\n\r$`()<>{}#\\"):
		return "it is more than plain words"
	case strings.Contains(strings.ReplaceAll(bare, "&&", ""), "&"):
		return "a part of it runs in the background"
	}
	for _, command := range words {
		switch {
		case len(command) == 0:
			return "a command is missing"
		case strings.Contains(command[0], "="):
			return "it sets a variable"
		case len(denied) > 0 && slices.Contains(namesNothing, command[0]):
			return "what it runs may be denied"
		}
		if !slices.ContainsFunc(allowed, func(p string) bool {
			ps := strings.Fields(p)
			return len(ps) > 0 && len(command) >= len(ps) && slices.Equal(command[:len(ps)], ps) && // so "*" names nothing
				(len(ps) > 1 || !slices.Contains(namesNothing, ps[0])) && !slices.Contains(command[len(ps):], doesMore[ps[0]]) &&
				(len(ps) == len(command) || ps[len(ps)-1][0] != '-') // it names what stands behind an option
		}) {
			return "no pattern of words names " + command[0] + " and all that it does"
		}
	}
	return ""
}

// unquoted is a line without what stands in quotes, and the words of its commands. It
// fails on quotes with an expansion inside, and on ones that do not end.
func unquoted(line string) (bare string, commands [][]string, ok bool) {
	line = strings.ReplaceAll(line, "2>&1", "")
	var out strings.Builder
	var word *string
	command := []string{}
	quote := rune(0)
	add := func(r rune) {
		if word == nil {
			word = new(string)
		}
		if r != 0 {
			*word += string(r)
		}
	}
	end := func() {
		if word != nil {
			command, word = append(command, *word), nil
		}
	}
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == '"' && (r == '$' || r == '`' || r == '\\'):
			return "", nil, false
		case quote != 0:
			add(r)
		case r == '\'' || r == '"':
			quote = r
			add(0)
		case r == ' ' || r == '\t':
			end()
			out.WriteRune(' ')
		case strings.ContainsRune(";|&", r):
			end()
			if len(command) > 0 {
				commands, command = append(commands, command), nil
			}
			out.WriteRune(r)
		default:
			add(r)
			out.WriteRune(r)
		}
	}
	end()
	if len(command) > 0 {
		commands = append(commands, command)
	}
	return out.String(), commands, quote == 0
}
