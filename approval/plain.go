package approval

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// simple is one simple command of plain words.
type simple struct {
	text  string // as written in the line
	words []string
}

const notSimple = "it is more than simple commands of plain words"

// maxParts bounds a chain: no person reads a longer one.
const maxParts = 32

// plainCommands returns the simple commands of a line that is one of them, or a chain or pipe of nothing else; for any
// other line it returns why not.
func plainCommands(line string) (list []simple, why string) {
	switch {
	case otherShell:
		return nil, "command patterns are not used with this system's shell"
	case strings.Contains(line, "\n"):
		return nil, "it has several lines"
	case hasOddCharacter(line):
		return nil, "it holds control or invisible characters"
	}
	for _, variant := range variants {
		f, err := syntax.NewParser(syntax.Variant(variant), syntax.KeepComments(true)).Parse(strings.NewReader(line), "")
		if err != nil {
			return nil, "it cannot be read as a shell command"
		}
		if len(f.Last) != 0 || len(f.Stmts) == 0 {
			return nil, notSimple
		}
		var got []simple
		for i, s := range f.Stmts {
			if s.Semicolon.IsValid() != (i < len(f.Stmts)-1) || !appendCommands(line, s, &got) {
				return nil, notSimple
			}
		}
		if list != nil && !sameCommands(list, got) {
			return nil, notSimple
		}
		list = got
	}
	if len(list) > 1 {
		for _, c := range list {
			if c.words[0] == "cd" || c.words[0] == "pushd" || c.words[0] == "popd" {
				return nil, c.words[0] + " changes where the other commands run"
			}
		}
	}
	return list, ""
}

func sameCommands(a, b []simple) bool {
	return slices.EqualFunc(a, b, func(x, y simple) bool { return x.text == y.text && slices.Equal(x.words, y.words) })
}

// appendCommands appends the simple commands of a statement.
func appendCommands(line string, s *syntax.Stmt, out *[]simple) bool {
	if s.Negated || s.Background || s.Coprocess || s.Disown || len(s.Comments) > 0 || len(*out) >= maxParts {
		return false
	}
	if two, ok := s.Cmd.(*syntax.BinaryCmd); ok {
		if two.Op != syntax.AndStmt && two.Op != syntax.OrStmt && two.Op != syntax.Pipe || len(s.Redirs) > 0 {
			return false
		}
		return !two.X.Semicolon.IsValid() && !two.Y.Semicolon.IsValid() && appendCommands(line, two.X, out) &&
			appendCommands(line, two.Y, out)
	}
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Assigns) > 0 || len(call.Args) == 0 {
		return false
	}
	for _, r := range s.Redirs {
		if !makesNoFile(r) {
			return false
		}
	}
	words := make([]string, len(call.Args))
	for i, w := range call.Args {
		v, ok := plainWord(w)
		if !ok {
			return false
		}
		words[i] = v
	}
	if !programName(words[0]) {
		return false
	}
	*out = append(*out, simple{line[s.Pos().Offset():statementEnd(s)], words})
	return true
}

// programName reports a name in letters that cannot be mistaken for others. Jobs (%1) and words that begin with a dash
// are no names.
func programName(s string) bool {
	if s == "" || strings.Contains(s, "=") || s[0] == '-' || s[0] == '%' {
		return false
	}
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// statementEnd is where a statement's own text ends, without the separator after it.
func statementEnd(s *syntax.Stmt) uint {
	if s.Semicolon.IsValid() {
		return s.Semicolon.Offset()
	}
	return s.End().Offset()
}

// makesNoFile reports a redirection that joins the two outputs, or leads to /dev/null.
func makesNoFile(r *syntax.Redirect) bool {
	if r.Hdoc != nil || r.Word == nil || r.N != nil && r.N.Value != "0" && r.N.Value != "1" && r.N.Value != "2" {
		return false
	}
	to := r.Word.Lit()
	switch r.Op {
	case syntax.DplOut:
		return to == "1" || to == "2"
	case syntax.RdrOut, syntax.AppOut:
		return to == "/dev/null" && (r.N == nil || r.N.Value != "0")
	case syntax.RdrIn:
		return to == "/dev/null" && (r.N == nil || r.N.Value == "0")
	}
	return false
}

var variants = []syntax.LangVariant{syntax.LangBash, syntax.LangPOSIX}

// special are characters that any shell may expand outside quotes.
const special = "*?[]{}~!#^$`\\<>|&;()=%\"'"

// plainWord evaluates a word made of letters and simple quotes only.
func plainWord(w *syntax.Word) (string, bool) {
	var b strings.Builder
	for _, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			// "=" and "%" are harmless after the first character, as in --a=b.
			if strings.ContainsAny(strings.NewReplacer("=", "", "%", "").Replace(part.Value), special) ||
				b.Len() == 0 && strings.HasPrefix(part.Value, "=") {
				return "", false
			}
			b.WriteString(part.Value)
		case *syntax.SglQuoted:
			if part.Dollar {
				return "", false
			}
			b.WriteString(part.Value)
		case *syntax.DblQuoted:
			if part.Dollar {
				return "", false
			}
			for _, inner := range part.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok || strings.ContainsAny(lit.Value, "\\`$!") {
					return "", false
				}
				b.WriteString(lit.Value)
			}
		default:
			return "", false
		}
	}
	return b.String(), true
}
