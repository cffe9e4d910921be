package contextwindow

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm"
)

func imageOf(media, data string) string {
	return `{"type":"image","source":{"type":"base64","media_type":"` + media + `","data":"` + data + `"}}`
}

func asked(blocks ...string) []byte {
	return []byte(`{"role":"user","content":[` + strings.Join(blocks, ",") + `]}`)
}

// webpFile is the header of such a file, which is all that is read.
func webpFile(kind string, payload ...byte) string {
	b := append([]byte("RIFF\x00\x00\x00\x00WEBP"+kind+"\x00\x00\x00\x00"), payload...)
	return base64.StdEncoding.EncodeToString(append(b, make([]byte, 33-len(b))...))
}

// padded is a dot in a file with so many further bytes.
func padded(n int) string {
	head, _ := base64.StdEncoding.DecodeString(drawn(1, 1, "png"))
	return base64.StdEncoding.EncodeToString(append(head, make([]byte, n)...))
}

func TestHeadersOfImages(t *testing.T) {
	for name, c := range map[string]struct {
		data string
		want picture
	}{
		"png":             {drawn(7, 5, "png"), picture{"image/png", 7, 5}},
		"jpeg":            {drawn(7, 5, "jpeg"), picture{"image/jpeg", 7, 5}},
		"gif":             {drawn(7, 5, "gif"), picture{"image/gif", 7, 5}},
		"webp, lossy":     {webpFile("VP8 ", 0, 0, 0, 0x9d, 1, 0x2a, 0x40, 0x1f, 0x90, 0x01), picture{"image/webp", 8000, 400}},
		"webp, lossless":  {webpFile("VP8L", 0x2f, 0x06, 0x00, 0x01, 0x00), picture{"image/webp", 7, 5}},
		"webp, extended":  {webpFile("VP8X", 0, 0, 0, 0, 0x0f, 0x27, 0, 1, 0, 0), picture{"image/webp", 10000, 2}},
		"webp, no more":   {webpFile("VP8X", 0, 0, 0, 0, 0x0f, 0x27, 0, 1, 0, 0)[:40], picture{"image/webp", 10000, 2}},
		"text":            {base64.StdEncoding.EncodeToString([]byte("<svg/> is no image here")), picture{}},
		"png, cut":        {drawn(7, 5, "png")[:24], picture{}},
		"png of no size":  {base64.StdEncoding.EncodeToString(append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 60)...)), picture{}},
		"one byte":        {"AA==", picture{}},
		"webp of no kind": {webpFile("ABCD"), picture{}},
	} {
		got, ok := pictureOf([]byte(`"` + c.data + `"`))
		if ok != (c.want != picture{}) || ok && got != c.want {
			t.Errorf("%s: got %+v %t, want ok = (c.want != picture{}) and (not ok or got = %v)", name, got, ok, c.want)
		}
	}
}

// What one image may be, by provider.
func TestImagesThatAProviderRefuses(t *testing.T) {
	heavy := padded(9 << 19)
	for name, c := range map[string]struct {
		media, data string
		refused     map[string]string // by whom, in words
	}{
		"small":           {"image/png", drawn(1, 1, "png"), nil},
		"6 MB":            {"image/png", heavy, map[string]string{"anthropic": "this provider takes 5242880"}},
		"wide":            {"image/png", drawn(8001, 1, "png"), map[string]string{"anthropic": "8001 x 1 pixels"}},
		"moving":          {"image/gif", drawn(2, 2, "gif"), map[string]string{"google": "no GIF"}},
		"named otherwise": {"image/png", drawn(2, 2, "gif"), map[string]string{"google": "no GIF"}},
		"no image": {"image/png", base64.StdEncoding.EncodeToString([]byte("hello, this is text")), map[string]string{
			"anthropic": "cannot be sent", "openai": "cannot be sent", "google": "cannot be sent", "openai-compatible": "cannot be sent",
		}},
	} {
		for _, provider := range []string{"anthropic", "openai", "openai-compatible", "google"} {
			result := fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"seen"},%s]}]}`, imageOf(c.media, c.data))
			got, notes, err := Build([][]byte{asked(imageOf(c.media, c.data)), lines(`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}`)[0], []byte(result)}, For(provider))
			if err != nil {
				t.Fatal(err)
			}
			text := show(got)
			if says, is := c.refused[provider]; is != !strings.Contains(text, c.data) || strings.Count(text, says) < 2 && is || is != (len(notes) > 0) {
				t.Errorf("%s, %s: %d notes, %.200s", name, provider, len(notes), text)
			}
		}
	}
}

// An image is sent as what it is, whatever its file was called.
func TestTheKindOfAnImageIsMended(t *testing.T) {
	got, _, err := Build([][]byte{asked(imageOf("image/png", drawn(2, 2, "jpeg")))}, For("anthropic"))
	if err != nil || !strings.Contains(show(got), `"media_type":"image/jpeg"`) {
		t.Error(err, show(got))
	}
}

func imagesIn(messages []llm.Message) (n int) {
	for _, m := range messages {
		n += strings.Count(string(m.Content), `"type":"image"`)
	}
	return n
}

// Too many images: the oldest go, half of what is allowed at a time, so that the
// beginning of the request changes rarely.
func TestOldImagesGoInSteps(t *testing.T) {
	o := Options{Images: ImageLimits{Count: 10}}
	b := NewBuilder(o)
	changes, before := 0, ""
	var counts []int
	for i := range 40 {
		b.Append(asked(imageOf("image/png", drawn(1, 1+i%3, "png")), fmt.Sprintf(`{"type":"text","text":"%d"}`, i)))
		b.Append([]byte(`{"role":"assistant","content":"ok"}`))
		messages, notes, err := b.Messages()
		if err != nil {
			t.Fatal(err)
		}
		now := show(messages[:len(messages)-1])
		if !strings.HasPrefix(now, before) {
			changes++
		}
		before = now
		counts = append(counts, imagesIn(messages))
		if i == 39 && !strings.Contains(fmt.Sprint(notes), "more than the provider accepts") {
			t.Errorf("notes %v", notes)
		}
	}
	if changes != 5 || counts[9] != 10 || counts[10] != 5 || counts[39] > 10 {
		t.Errorf("the beginning changed %d times, images %v", changes, counts)
	}
}

// More than twenty images: none may be large, which one alone may be.
func TestManyImagesAreSmall(t *testing.T) {
	wide := imageOf("image/png", drawn(2001, 1, "png"))
	small := imageOf("image/png", drawn(1, 1, "png"))
	h := [][]byte{asked(wide)}
	for range 19 {
		h = append(h, asked(small))
	}
	few, _, _ := Build(h, For("anthropic"))
	many, _, _ := Build(append(h, asked(small)), For("anthropic"))
	if imagesIn(few) != 20 || imagesIn(many) != 20 || strings.Contains(show(many), drawn(2001, 1, "png")) {
		t.Errorf("%d and %d images", imagesIn(few), imagesIn(many))
	}
	alone, _, _ := Build([][]byte{asked(strings.Split(strings.Repeat(small+"|", 60)+wide, "|")...)}, For("anthropic"))
	if n := imagesIn(alone); n != 50 {
		t.Errorf("one message of 61 images is sent with %d", n)
	}
}

// The bytes of all images count, too.
func TestImagesTogether(t *testing.T) {
	o := Options{Images: ImageLimits{Total: 4000}}
	data := padded(600)
	var h [][]byte
	for range 9 {
		h = append(h, asked(imageOf("image/png", data)))
	}
	got, _, err := Build(h, o)
	if n := imagesIn(got); err != nil || n != 3 {
		t.Errorf("%d images, %v", n, err)
	}
}

// Wherever a block of a request comes from, Trace knows: the stored block holds its
// bytes, or its words.
func TestTraceFindsTheOrigin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := genWork(t)
		o := For(rapid.SampledFrom([]string{"anthropic", "openai", "google"}).Draw(t, "provider"))
		messages, _, err := Build(h, o)
		if err != nil {
			t.Skip()
		}
		trace := Trace(h, o)
		if len(trace) < len(messages)-1 {
			t.Fatalf("%d messages, %d traced", len(messages), len(trace))
		}
		for i, origins := range trace {
			sent := blocks(messages[i].Content)
			if len(sent) != len(origins) {
				t.Fatalf("message %d has %d blocks, %d traced: %s", i, len(sent), len(origins), messages[i].Content)
			}
			for k, at := range origins {
				if at == added {
					continue
				}
				content, _ := esjson.Get(h[at.Message], "content")
				stored := blocks(content)[at.Block]
				if esjson.TextOf(sent[k], "type") == esjson.TextOf(stored, "type") && esjson.TextOf(sent[k], "type") == "text" && !bytes.Equal(sent[k], stored) {
					t.Fatalf("message %d, block %d is %s and not %s", i, k, sent[k], stored)
				}
				if typ := esjson.TextOf(sent[k], "type"); typ == "tool_use" && typ != esjson.TextOf(stored, "type") {
					t.Fatalf("message %d, block %d is a call, and comes from %s", i, k, stored)
				}
			}
		}
	})
}

// The text that Build puts in front of a model's message counts as a message.
func TestTraceCountsAnAddedStart(t *testing.T) {
	h := lines(`{"role":"assistant","content":"a"}`, `{"role":"user","content":"b"}`)
	want := [][]Origin{{added}, {{0, 0}}, {{1, 0}}}
	if got := Trace(h, Options{}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestWithhold(t *testing.T) {
	const text = "[gone]"
	user := `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"w"},{"type":"image"}]},{"type":"image"},{"type":"text","text":"t"}],"ts":1}`
	model := `{"role":"assistant","content":[{"type":"thinking","thinking":"h"},{"type":"tool_use","id":"a","name":"f","input":{"x":1}}]}`
	gone := `{"type":"text","text":"[gone]"}`
	for name, c := range map[string]struct {
		message string
		block   int
		images  bool
		want    string
	}{
		"images of a result": {user, 0, true, strings.Replace(user, `{"type":"image"}]`, gone+`]`, 1)},
		"a result":           {user, 0, false, strings.Replace(user, `[{"type":"text","text":"w"},{"type":"image"}]`, `"[gone]"`, 1)},
		"an image":           {user, 1, false, strings.Replace(user, `},{"type":"image"},`, `},`+gone+`,`, 1)},
		"a text is no image": {user, 2, true, user},
		"beyond the end":     {user, 3, false, user},
		"a thought":          {model, 0, false, `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{"x":1}}]}`},
		"a call":             {model, 1, false, strings.Replace(model, `{"x":1}`, `{}`, 1)},
		"all":                {`{"role":"user","content":"words"}`, -1, false, `{"role":"user","content":[` + gone + `]}`},
		"only a thought":     {`{"content":[{"type":"thinking"}]}`, 0, false, `{"content":[` + gone + `]}`},
		"no content":         {`{"role":"user"}`, 0, false, `{"role":"user"}`},
	} {
		if got := string(Withhold([]byte(c.message), c.block, c.images, text)); got != c.want {
			t.Errorf("%s: %s, wanted %s", name, got, c.want)
		}
	}
}

func TestWeigh(t *testing.T) {
	image := imageOf("image/png", strings.Repeat("A", 1000))
	for in, want := range map[string][2]int{
		`{"role":"user","content":"four"}`: {32, 0},
		string(asked(image)):               {len(asked(image)) - 1002, 1},
		`[{"type":"tool_result","content":[` + image + "," + image + `]}]`: {2*len(image) + 38 - 2004, 2},
		`{"type":"image"}`: {16, 0},
		`{"type":"document","source":{"data":"four"}}`: {44, 0},
		`5`: {1, 0},
	} {
		if bytes, images := Weigh([]byte(in)); bytes != want[0] || images != want[1] {
			t.Errorf("%.60s: %d bytes, %d images, wanted %v", in, bytes, images, want)
		}
	}
}
