package approval

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// plain returns the words of a line that is one simple command of plain words,
// or says why it is none.
func plain(line string) (words []string, why string) {
	switch {
	case otherShell:
		return nil, "command patterns are not used with this system's shell"
	case odd(line):
		return nil, "it holds control or invisible characters"
	}
	const notSimple = "it is more than one simple command of plain words"
	for _, variant := range variants {
		f, err := syntax.NewParser(syntax.Variant(variant), syntax.KeepComments(true)).Parse(strings.NewReader(line), "")
		if err != nil {
			return nil, "it cannot be read as a shell command"
		}
		if len(f.Stmts) != 1 || len(f.Last) != 0 {
			return nil, notSimple
		}
		s := f.Stmts[0]
		call, ok := s.Cmd.(*syntax.CallExpr)
		if !ok || s.Negated || s.Background || s.Coprocess || s.Disown || len(s.Redirs) > 0 || len(s.Comments) > 0 || s.Semicolon.IsValid() || len(call.Assigns) > 0 || len(call.Args) == 0 {
			return nil, notSimple
		}
		got := make([]string, len(call.Args))
		for i, w := range call.Args {
			v, ok := plainWord(w)
			if !ok {
				return nil, notSimple
			}
			got[i] = v
		}
		if words != nil && strings.Join(words, "\x00") != strings.Join(got, "\x00") {
			return nil, notSimple
		}
		words = got
	}
	if words[0] == "" || strings.Contains(words[0], "=") {
		return nil, notSimple
	}
	return words, ""
}

var variants = []syntax.LangVariant{syntax.LangBash, syntax.LangPOSIX}

// special are characters that any shell may expand when they stand unquoted.
const special = "*?[]{}~!#^$`\\<>|&;()=%\"'"

// plainWord evaluates a word made of letters and simple quotes only.
func plainWord(w *syntax.Word) (string, bool) {
	var b strings.Builder
	for _, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			// "=" and "%" are harmless behind the first character, as in --a=b.
			if strings.ContainsAny(strings.NewReplacer("=", "", "%", "").Replace(part.Value), special) || b.Len() == 0 && strings.HasPrefix(part.Value, "=") {
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
