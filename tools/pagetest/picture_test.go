package pagetest

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// The main states in both colour schemes and both sizes: nothing is wider than the window. With ROOST_PAGE_PICTURES they
// are written there.
func TestPictures(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for _, title := range []string{"Mend the gate", "Count the fence posts", "Order the paint"} {
		h.wait(h.task("- tools: [{name: attempt_completion, input: {result: It is done.}}]", title, nil), "completed")
	}
	asks := h.task(`
- {text: "I will **write** the list first:\n\n`+"```go\\nfunc paint(c string) error {\\n\\treturn brush.Use(c)\\n}\\n```"+`\n\n| part | colour |\n|---|---|\n| post | red |", reasoning: "The posts come before the boards."}
- tools: [{name: write_to_file, input: {path: fence.txt, content: "posts: red\nboards: green\n"}}]
- tools: [{name: attempt_completion, input: {result: The fence is painted.}}]
`, "Paint the fence: posts red, boards green", object{"approve": "ask"})
	h.wait(asks, "waiting")
	tab := h.loggedIn(desktop, "/")
	for name, s := range map[string]size{"desktop": desktop, "phone": phone} {
		for _, scheme := range []string{"light", "dark"} {
			tab.do("set the window", sized(s), media("", "prefers-color-scheme", scheme))
			for state, path := range map[string]string{"history": "/", "search": "/?q=fence", "task": "/tasks/" + asks} {
				tab.visit(path)
				tab.live()
				if state != "search" {
					tab.armed()
				}
				tab.picture("page-" + state + "-" + name + "-" + scheme)
			}
			tab.keys("?")
			tab.text("dialog#keys", "search")
			tab.picture("page-keys-" + name + "-" + scheme)
		}
	}
}

// media sets what the browser shows the page on, and one thing that its person prefers.
func media(kind, feature, value string) chromedp.Action[chromedp.Void] {
	return command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Media:    kind,
		Features: []*emulation.MediaFeature{{Name: feature, Value: value}},
	})
}

// fits fails when the page is wider than the window. The innerWidth of a phone grows with what is too wide.
func (t *tab) fits(name string) {
	t.Helper()
	if wide := run[int](t, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); wide > 0 {
		t.Errorf("%s is %d pixels wider than the window", name, wide)
	}
}

func (t *tab) picture(name string) {
	t.Helper()
	t.fits(name)
	dir := os.Getenv("ROOST_PAGE_PICTURES")
	if dir == "" || long { // its names say what the size of the short form is
		return
	}
	data, err := chromedp.Run(t.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	seen, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, fewColours(seen)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// fewColours gives a picture the 256 colours that it uses most: a page uses few, besides the edges of its letters.
func fewColours(in image.Image) image.Image {
	counts := map[color.RGBA]int{}
	b := in.Bounds()
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(in.At(x, y)).(color.RGBA) }
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			counts[at(x, y)]++
		}
	}
	most := slices.SortedFunc(maps.Keys(counts), func(p, q color.RGBA) int { return cmp.Compare(counts[q], counts[p]) })
	var palette color.Palette
	for _, c := range most[:min(len(most), 256)] {
		palette = append(palette, c)
	}
	out := image.NewPaletted(b, palette)
	index := map[color.RGBA]uint8{}
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			c := at(x, y)
			i, known := index[c]
			if !known {
				i = uint8(palette.Index(c)) //nolint:gosec // a palette has at most 256 colours
				index[c] = i
			}
			out.SetColorIndex(x, y, i)
		}
	}
	return out
}
