package outline

import (
	"regexp"
	"sync"
)

// pattern is a regular expression that is compiled when it is first asked: most programs
// start to do something else.
type pattern func() *regexp.Regexp

func lazy(text string) pattern {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

func (p pattern) MatchString(s string) bool { return p().MatchString(s) }

// The words with which declarations begin. Modifiers before them, such as static or public, are skipped.
var (
	golang = language{declares: lazy(`^(?:func|type|var|const)\b`)}
	python = language{deepest: 8, declares: lazy(`^(?:async\s+)?(?:def|class)\s`)}
	ruby   = language{deepest: 8, declares: lazy(`^(?:def|class|module)\s`)}
	script = language{deepest: 4, declares: lazy(
		`^(?:export\s+)?(?:default\s+)?(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?` +
			`(?:(?:function\b|class\s|interface\s|enum\s|namespace\s|type\s+\w+[^=]*=)` +
			`|(?:const|let|var)\s+\w+[^=]*=\s*(?:async\s*)?(?:function\b|\(|\w+\s*=>|class\b)` +
			`|(?:(?:public|private|protected|static|readonly|override|get|set|async|\*)\s+)*(?:constructor|#?[a-z_$][\w$]*)\s*(?:<[^>]*>)?\([^;]*\)\s*(?::[^={]*)?\{\s*$)`)}
	rust = language{deepest: 4, declares: lazy(
		`^(?:pub(?:\([^)]*\))?\s+)?(?:default\s+)?(?:const\s+|async\s+|unsafe\s+|extern\s+(?:"[^"]*"\s+)?)*(?:fn|struct|enum|trait|impl|mod|type|union|macro_rules!)\b`)}
	managed = language{deepest: 8, declares: lazy( // Java, C#, Kotlin, Swift, Scala, Dart, PHP
		`^(?:(?:public|private|protected|internal|open|static|final|abstract|sealed|override|virtual|async|suspend|inline|data|partial|readonly|native|synchronized|mutating|fileprivate|case|external|const|lateinit)\s+)*` +
			`(?:(?:class|interface|enum|record|struct|object|trait|protocol|extension|namespace|fun|func|function|def|init)\b` +
			`|[\w<>\[\],.?]+\s+\w+\s*\([^;]*\)\s*(?:throws\s+[\w,. ]+)?\s*\{\s*$)`)}
	c = language{declares: lazy(
		`^(?:(?:typedef\s+)?(?:struct|union|enum|class|namespace)\b[^;]*$|template\s*<|#define\s+\w+\(|(?:[\w:<>,*&~]+\s+)+[*&]*[\w:~]+\s*\([^;]*$)`)}
	shell    = language{deepest: 2, declares: lazy(`^(?:function\s+[\w:-]+|[\w:-]+\s*\(\)\s*\{?)`)}
	markdown = language{headings: true, declares: lazy(`^#{1,6}\s+\S`)}
	elixir   = language{deepest: 4, declares: lazy(`^(?:defmodule|defp?|defmacrop?|defstruct|defprotocol|defimpl)\b`)}
	lua      = language{deepest: 4, declares: lazy(`^(?:local\s+)?function\b`)}
	sql      = language{declares: lazy(`(?i)^create\s+(?:or\s+replace\s+)?(?:temp(?:orary)?\s+|unique\s+|materialized\s+)*(?:table|view|function|procedure|trigger|index|type|schema)\b`)}
	zig      = language{deepest: 4, declares: lazy(`^(?:pub\s+)?(?:export\s+|inline\s+)?(?:fn\s|const\s+\w+\s*=\s*(?:packed\s+|extern\s+)?(?:struct|enum|union)\b|test\b)`)}
)

var languages = map[string]language{
	".go": golang,
	".py": python, ".pyi": python,
	".rb": ruby, ".rake": ruby,
	".js": script, ".jsx": script, ".mjs": script, ".cjs": script, ".ts": script, ".tsx": script, ".mts": script,
	".cts": script, ".vue": script, ".svelte": script,
	".rs":   rust,
	".java": managed, ".cs": managed, ".kt": managed, ".kts": managed, ".swift": managed, ".scala": managed,
	".dart": managed, ".php": managed, ".groovy": managed,
	".c": c, ".h": c, ".cc": c, ".cpp": c, ".cxx": c, ".hh": c, ".hpp": c, ".m": c,
	".sh": shell, ".bash": shell, ".zsh": shell,
	".md": markdown, ".markdown": markdown,
	".ex": elixir, ".exs": elixir,
	".lua": lua,
	".sql": sql,
	".zig": zig,
}
