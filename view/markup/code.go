package markup

import (
	"regexp"
	"strings"
	"sync"
)

// For a page of a task it is enough to colour comments, strings, numbers and keywords, which most languages write in few
// ways. A library was rejected: its languages and styles cost time and megabytes at every start of the program.

// family is the syntax of a group of languages.
type family struct {
	names             string
	comments, strings string // patterns
}

const (
	doubleQuoted = `"(?:\\.|[^"\\\n])*"`
	singleQuoted = `'(?:\\.|[^'\\\n])*'`
	backQuoted   = "`[^`]*`"
	tripleQuoted = `"""[\s\S]*?"""|'''[\s\S]*?'''`
)

var families = []family{
	{
		"go js javascript jsx ts typescript tsx mjs java c h cpp c++ cc hpp cs csharp " +
			"rs rust swift kotlin kt php scala dart groovy json jsonc json5 css scss less proto zig",
		`//[^\n]*|/\*[\s\S]*?\*/`, doubleQuoted + "|" + singleQuoted + "|" + backQuoted,
	},
	{
		"py python rb ruby sh bash shell zsh fish console yaml yml toml ini perl pl r make makefile " +
			"dockerfile docker elixir ex nix tf hcl conf",
		`#[^\n]*`, tripleQuoted + "|" + doubleQuoted + "|" + singleQuoted,
	},
	{"sql lua hs haskell elm ada", `--[^\n]*`, doubleQuoted + "|" + singleQuoted},
	{"html xml svg vue svelte xhtml", `<!--[\s\S]*?-->`, doubleQuoted + "|" + singleQuoted},
}

// keywords are the structural words of most languages. The keywords of other languages are coloured, too, which does no harm.
const keywords = ` abstract and as assert async await begin break case catch class const continue def default defer del do done echo ` +
	`elif else ` +
	`elsif end enum esac except export extends extern false fi final finally fn for foreach from func function global go goto if impl ` +
	`implements import in include instanceof interface internal is lambda let local loop map match mod module mut namespace new nil none ` +
	`not null of operator or override package pass private protected pub public raise range readonly record require return select self ` +
	`static struct super switch then this throw throws trait true try type typedef typeof union unless until use using val var void ` +
	`volatile when where while with yield `

// languages are the patterns of languages. Their groups are named as the classes of a page.
var languages = sync.OnceValue(func() map[string]*regexp.Regexp {
	diff := regexp.MustCompile(`(?m)(?P<gh>^(?:@@|diff |index |--- |\+\+\+ ).*)|(?P<gi>^\+.*)|(?P<gd>^-.*)`)
	all := map[string]*regexp.Regexp{"diff": diff, "patch": diff}
	for _, f := range families {
		syntax := regexp.MustCompile(`(?P<c>` + f.comments + `)|(?P<s>` + f.strings + `)|(?P<nt></?[A-Za-z][\w:-]*)|` +
			`(?P<m>0[xX][0-9a-fA-F_]+|\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?P<word>[A-Za-z_$][\w$]*)`)
		for name := range strings.FieldsSeq(f.names) {
			all[name] = syntax
		}
	}
	return all
})

// lexerOf is nil for an unknown language.
func lexerOf(language string) *regexp.Regexp { return languages()[strings.ToLower(language)] }
