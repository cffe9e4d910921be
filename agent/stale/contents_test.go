package stale

import (
	"bytes"
	"fmt"
	"os"
	"testing"
)

// Contents are given back as they were, each once; what
// nobody kept is not there, and nothing is left behind.
func TestTexts(t *testing.T) {
	where := t.TempDir()
	kept := contents{dir: where}
	if kept.has("0") || kept.get("0") != nil {
		t.Error("it holds what nobody kept")
	}
	for i := range 300 {
		kept.keep(fmt.Sprint(i), bytes.Repeat([]byte{byte(i)}, i%7))
		kept.keep(fmt.Sprint(i), []byte("not the same again"))
	}
	kept.keep("", []byte("nameless"))
	kept.keep("nothing", nil)
	for i := range 300 {
		if got := kept.get(fmt.Sprint(i)); got == nil || !bytes.Equal(got, bytes.Repeat([]byte{byte(i)}, i%7)) {
			t.Fatalf("content %d is %q", i, got)
		}
	}
	if kept.has("") || kept.has("nothing") || kept.size > 300*7 {
		t.Errorf("it holds %d bytes", kept.size)
	}
	kept.close()
	if kept.has("1") {
		t.Error("it holds something after its end")
	}
	if left, err := os.ReadDir(where); err != nil || len(left) != 0 {
		t.Errorf("left: %v (%v)", left, err)
	}
}

// When the folder of kept contents is removed, or its file is cut, only the kept contents are lost.
func TestTextsOfALostFolder(t *testing.T) {
	big := bytes.Repeat([]byte("x"), contentLimit)
	gone := contents{dir: t.TempDir() + "/gone"}
	gone.keep("1", big)
	gone.keep("2", big)
	if gone.has("1") || gone.has("2") {
		t.Error("kept nowhere")
	}
	gone.close()

	cut := contents{dir: t.TempDir()}
	cut.keep("1", big)
	if err := cut.file.Truncate(10); err != nil {
		t.Fatal(err)
	}
	if cut.get("1") != nil {
		t.Error("a content that was cut is given back")
	}
	cut.close()
}
