package markup

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// forms are what Markdown makes something of; every % becomes a word of its own.
var forms = []string{
	"%", "# %", "**%** _%_ ~~%~~ `%`", "- %\n  - %\n\n    %", "1. %\n7. %", "> %\n>> %\n%", "[%](https://%.example/% \"%\")", "[%](/% '%')", "[%](javascript:%)",
	"![%](https://%.png \"%\")", "[%]: https://%.example/ \"%\"", "[%][%]\n\n[%]: /%", "[%]\n\n[%]: <%>\n'%'", "```%\n%\n```", "```% %=%\n%", "~~~ % {%}\n%\n~~~", "    %", "<%>", "<!-- % -->",
	"<div class=%>\n%\n</div>\n%", "<script>%</script>", "</%>", "<https://%.example>", "% | %\n--- | ---\n% | % | %\n% \\| %", "- [x] %\n- [ ] %", "%\n===", "%\n---\n%", "\\# % &amp; &% \\*%\\*", "***",
	"%  \n%\\\n%", "<a href=\"%\">%</a>", "`` % ` % ``", "<?% ?>", "<![CDATA[%]]>", "<!% >", "&#0;%", "\t%", "[^%]: %", "%\u2028%", "<details>\n<summary>%</summary>\n\n%\n</details>",
}

var tag = regexp.MustCompile(`<[^>]*>`)

// Whatever marks stand around the words of a model, a page has all of them: as words, or
// where a link leads.
func TestAPageKeepsEveryWord(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var words []string
		var text strings.Builder
		for _, form := range rapid.SliceOfN(rapid.SampledFrom(forms), 1, 5).Draw(t, "forms") {
			for _, c := range form {
				if c != '%' {
					text.WriteRune(c)
					continue
				}
				words = append(words, fmt.Sprintf("w%dw", len(words)))
				text.WriteString(words[len(words)-1])
			}
			text.WriteString(rapid.SampledFrom([]string{"\n", "\n\n", " "}).Draw(t, "end"))
		}
		page := testSetter().Markdown(text.String())
		shown := html.UnescapeString(tag.ReplaceAllString(page, ""))
		for _, w := range words {
			if !strings.Contains(shown, w) && !strings.Contains(page, w) {
				t.Fatalf("%s is lost of %q:\n%s", w, text.String(), page)
			}
		}
	})
}

// A table is shown as it was typed where a row has more cells than the table has columns, or where the page would need
// far more cells than the text has; others are tables.
func TestTablesThatHaveRoomAreTables(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"a | b\n--- | ---\n1 | 2":                                   true,
		"a | b\n--- | ---\n1 | 2 | 3":                               false,
		"a | b\n--- | ---\n`x\\|y` | **2** &amp; <3>":               true,
		"| a | b |\n|---|:-:|\n| [l](https://x.example/) | ~~2~~ |": true,
		strings.Repeat("|a", 20) + "\n" + strings.Repeat("|-", 20) + strings.Repeat("\n"+strings.Repeat("|1", 20), 500): true,
		strings.Repeat("|a", 800) + "\n" + strings.Repeat("|-", 800) + strings.Repeat("\n|", 800):                       false, // of 4 KB it would make 6 MB
	} {
		if page := testSetter().Markdown(text); strings.Contains(page, "<table>") != want {
			t.Errorf("%.100q is shown as %.200s, want a table: %v", text, page, want)
		}
	}
}

// Lines that open very many levels are shown as they were typed: each level costs the time of all that follow.
func TestDeepLevelsAreText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		strings.Repeat("1. ", 300) + "a":                  false,
		strings.Repeat("10)\t", 300) + "a":                false,
		strings.Repeat("> - ", 150) + "a":                 false,
		strings.Repeat("1. a\n2. b 3. c\n", 300):          true,
		strings.Repeat("1. ", 9) + "a\n\n> - b\n\n1) c\n": true,
	} {
		page := testSetter().Markdown(text)
		if strings.Contains(page, "<li>") != want || !strings.Contains(page, "a") {
			t.Errorf("%.20q is shown as %.200s, want a list: %v", text, page, want)
		}
	}
}
