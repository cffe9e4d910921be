package screen

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sh runs a line of a shell on a terminal.
func sh(t *testing.T, line string, o Options) *Terminal {
	t.Helper()
	return On(t, exec.Command("sh", "-c", line), o)
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), Limit)
	t.Cleanup(cancel)
	return ctx
}

func TestAProgramIsSeenAsAPersonSeesIt(t *testing.T) {
	t.Parallel()
	x := sh(t, `stty size; printf '\033[1;31mred\033[0m plain \033[7mturned\033[0m \033[38;2;1;2;3mown\033[0m \344\275\240\n'; read line; echo "got $line"`, Options{Size: Size{40, 10}})
	p := See(t, x, "own", "10 40")
	for _, tt := range []struct {
		text string
		want Look
	}{
		{"red", Look{Fg: Palette(1), Bold: true}}, {"plain", Look{}}, {"turned", Look{Reverse: true}}, {"own", Look{Fg: RGB | 0x010203}},
	} {
		if c := p.Find(tt.text); c == nil || c.Look != tt.want {
			t.Errorf("%s looks %+v, want %+v", tt.text, c, tt.want)
		}
	}
	if c := p.Find("\344\275\240"); c == nil || c.Width != 2 {
		t.Errorf("a wide character is %+v, want 2 columns", c)
	}
	if p.Find("nowhere") != nil {
		t.Error("a text is found that is not there")
	}
	if err := x.Type("yes\r"); err != nil {
		t.Fatal(err)
	}
	if code, err := x.Exit(within(t)); code != 0 || err != nil || !x.Picture().Holds("got yes") {
		t.Errorf("exit %d, %v; the screen shows:\n%s", code, err, x.Picture().Text())
	}
}

func TestATerminalSaysWhetherItIsLight(t *testing.T) {
	t.Parallel()
	for light, want := range map[bool]string{true: "ffff", false: "0000"} {
		x := sh(t, `stty raw -echo min 0 time 50; printf '\033]11;?\007'; a=$(dd bs=1 count=20 2>/dev/null | tr -cd '0-9a-f/:'); printf '%s end' "$a"`, Options{Light: light})
		See(t, x, want+"/"+want, "end")
	}
}

func TestWaitingEnds(t *testing.T) {
	t.Parallel()
	x := sh(t, "echo here; exit 3", Options{})
	if code, err := x.Exit(within(t)); code != 3 || err != nil {
		t.Errorf("exit %d, %v; want 3", code, err)
	}
	x.Hangup()
	if _, err := x.WaitFor(within(t), "never"); !errors.Is(err, ErrEnded) || !strings.Contains(err.Error(), "here") {
		t.Errorf("waiting for what never comes: %v, want %v and the screen", err, ErrEnded)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sh(t, "cat", Options{}).WaitFor(ctx, "never"); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting under an ended context: %v", err)
	}
}

func TestAResizeReachesTheProgram(t *testing.T) {
	t.Parallel()
	x := sh(t, `trap 'stty size; exit' WINCH; echo ready; while :; do read line; done`, Options{})
	See(t, x, "ready")
	if err := x.Resize(Size{100, 30}); err != nil {
		t.Fatal(err)
	}
	if p := See(t, x, "30 100"); p.Size != (Size{100, 30}) {
		t.Errorf("the picture is %v", p.Size)
	}
}

const session = `
# a session
wait ready
hold 1s
type ab
press enter
watch "got ab"
shot end
`

func TestAScriptBecomesAPicture(t *testing.T) {
	t.Parallel()
	script, err := ParseScript(session)
	if err != nil {
		t.Fatal(err)
	}
	var shots []string
	frames, err := Play(within(t), exec.Command("sh", "-c", `echo ready; read a; printf '\033[32mgot\033[0m %s <&>\n' "$a"; cat`), Options{Size: Size{30, 5}}, script,
		func(name string, p *Picture) error {
			shots = append(shots, name+": "+p.Text())
			return nil
		})
	if errors.Is(err, ErrNone) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(shots) != 1 || !strings.HasPrefix(shots[0], "end: ready\nab\n") || !strings.Contains(shots[0], "got ab") {
		t.Errorf("the shots are %q", shots)
	}
	if len(frames) < 3 || frames[0].For < time.Second {
		t.Errorf("%d frames, the first of %v; want at least 3, the first held for a second", len(frames), frames[0].For)
	}
	for name, themes := range map[string][]Theme{"both": nil, "dark": {Dark}} {
		var b bytes.Buffer
		if err := SVG(&b, frames, themes...); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		for _, want := range []string{">got</text>", "&lt;&amp;&gt;", "class=\"f2\"", "@keyframes k1", "prefers-reduced-motion"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: the picture lacks %q", name, want)
			}
		}
		if got := strings.Contains(text, "prefers-color-scheme"); got != (themes == nil) {
			t.Errorf("%s: follows the reader's choice: %v", name, got)
		}
		for d := xml.NewDecoder(&b); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: the picture is no XML: %v", name, err)
			}
		}
	}
	if err := SVG(io.Discard, nil); err == nil {
		t.Error("no frames make a picture")
	}
}

func TestAScriptIsChecked(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"jump", "jump high", "press nokey", "hold long", "size big", "wait"} {
		if _, err := ParseScript(text); err == nil || !strings.Contains(err.Error(), "line 1") {
			t.Errorf("%q: %v, want an error that names the line", text, err)
		}
	}
	got, err := keys("ctrl+c enter x up")
	if want := "\x03\rx\x1b[A"; err != nil || strings.Join(got, "") != want {
		t.Errorf("keys: %q, %v; want %q", got, err, want)
	}
}

func TestColours(t *testing.T) {
	t.Parallel()
	for c, want := range map[Colour]paint{
		Default: "t", Palette(0): "f0", Palette(15): "f15", Palette(16): "#000000", Palette(231): "#ffffff", Palette(232): "#080808", RGB | 0xabcdef: "#abcdef",
	} {
		if got := fill(c, "t"); got != want {
			t.Errorf("colour %d is drawn as %s, want %s", c, got, want)
		}
	}
}

func TestGoldenWaitsForItsPictureAndDrawsIt(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv(pictures, dir)
	steady := func(text string) string { return strings.ReplaceAll(text, "secret", "hidden") }
	x := sh(t, "read a; printf 'a secret \344\275\240 %s' \"$a\"; cat", Options{Size: Size{30, 5}})
	Press(t, x, "x enter")
	See(t, x, "secret", "!hidden")
	t.Setenv(rewrite, "rewrite")
	Golden(t, x, "shot", steady)
	t.Setenv(rewrite, "")
	Golden(t, x, "shot", steady)
	for name, want := range map[string]string{"testdata/shot.txt": "x\na hidden \344\275\240 x\n", "shot.svg": ">a hidden \344\275\240 x</text>"} {
		if data, err := os.ReadFile(name); err != nil || !strings.Contains(string(data), want) || strings.Contains(string(data), "secret") {
			t.Errorf("%s holds %q, %v; want %q", name, data, err, want)
		}
	}
}

// A kept picture changes with a colour, with an attribute and with the place where they begin, and not with a look that
// is invisible.
func TestKeptLooks(t *testing.T) {
	t.Parallel()
	kept := func(printed string) string {
		x := sh(t, "printf '"+printed+" end'; cat", Options{Size: Size{30, 3}})
		return See(t, x, " end").looks()
	}
	const red = `\033[31mred\033[0m and \033[1;38;5;117mbold\033[0m`
	want := "--- looks\naaa     bbbb\n--- letters\na 1\nb 117 bold\n"
	if got := kept(red); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	for name, printed := range map[string]string{
		"another colour": `\033[32mred\033[0m and \033[1;38;5;117mbold\033[0m`, "no colour": `red and \033[1;38;5;117mbold\033[0m`,
		"an attribute less": `\033[31mred\033[0m and \033[38;5;117mbold\033[0m`, "a ground": `\033[31;47mred\033[0m and \033[1;38;5;117mbold\033[0m`,
		"one letter later": `r\033[31med\033[0m and \033[1;38;5;117mbold\033[0m`,
	} {
		if got := kept(printed); got == want {
			t.Errorf("%s: got the same looks", name)
		}
	}
	if got := kept(`\033[31mred\033[0m\033[33m \033[0mand \033[1;38;5;117mbold\033[0m`); got != want {
		t.Errorf("the colour of a blank is kept:\n%s", got)
	}
}

// What is made steady may have another width: the looks move with the text.
func TestSteadyTextMovesItsLooks(t *testing.T) {
	t.Parallel()
	x := sh(t, `printf '\344\275\240 took \033[31m12.5s\033[0m and \033[32mwell\033[0m end'; cat`, Options{Size: Size{40, 3}})
	p := See(t, x, " end").with(func(text string) string { return strings.ReplaceAll(text, "12.5s", "0s") })
	want := "\344\275\240 took 0s and well end\n--- looks\n        aa     bbbb\n--- letters\na 1\nb 2\n"
	if got := p.Text() + p.looks(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
