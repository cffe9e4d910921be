package filetool

import (
	"strings"
	"testing"

	"github.com/roost-dev/roost/workspace"
)

const notebook = `{"nbformat":4,"metadata":{},"cells":[
 {"cell_type":"markdown","source":["# Title\n","words"]},
 {"cell_type":"code","source":"x = 1\nprint(x)\n","outputs":[
   {"output_type":"stream","name":"stdout","text":["1\n","2\n"]},
   {"output_type":"display_data","data":{"image/png":"iVBORw0KGgo=","text/plain":["<Figure>"]}},
   {"output_type":"error","ename":"ValueError","evalue":"no","traceback":["\u001b[31mlong"]}]},
 {"cell_type":"code","source":[],"outputs":[]}, 7]}`

func TestReadNotebook(t *testing.T) {
	env, _ := sandbox(t, "a.ipynb", notebook, "broken.ipynb", `{"cells":[`, "other.IPYNB", `{"cells":"none"}`, "latin.ipynb", "caf\xe9")
	_, res := run(t, env, ReadFile(), call("path", "a.ipynb"))
	want := "File: a.ipynb\n" + notebookNote +
		" 1 | # %% cell 1 [markdown]\n 2 | # Title\n 3 | words\n 4 | \n 5 | # %% cell 2 [code]\n 6 | x = 1\n 7 | print(x)\n 8 | \n" +
		" 9 | # %% output of cell 2\n10 | 1\n11 | 2\n12 | <Figure>\n13 | [image/png, not shown]\n14 | ValueError: no\n15 | \n16 | # %% cell 3 [code]\n"
	if !strings.HasPrefix(res.Text, want) || strings.Contains(res.Text, "iVBOR") {
		t.Errorf("got\n%s\nwant\n%s", res.Text, want)
	}
	// What is kept of the file is its own content: an edit is an edit of that.
	if got := res.Files[0].Hash; got != workspace.HashOf([]byte(notebook)) {
		t.Errorf("the hash is %s", got)
	}
	// Lines are counted as they are shown.
	_, res = run(t, env, ReadFile(), call("path", "a.ipynb", "offset", 6, "limit", 2))
	if !strings.Contains(res.Text, "6 | x = 1\n7 | print(x)") || strings.Contains(res.Text, "Title") {
		t.Error(res.Text)
	}
	for name, want := range map[string]string{"broken.ipynb": `1 | {"cells":[`, "other.IPYNB": `1 | {"cells":"none"}`, "latin.ipynb": "1 | café"} {
		if _, res = run(t, env, ReadFile(), call("path", name)); !strings.HasSuffix(res.Text, "\n"+want) {
			t.Errorf("%s: got %q, want strings.HasSuffix(res.Text, \"\\n\"+want)", name, res.Text)
		}
	}
}

func TestNotebookOutputIsBounded(t *testing.T) {
	cell := `{"cells":[{"cell_type":"code","source":"x","outputs":[{"output_type":"stream","text":"` + strings.Repeat("😀", 5000) + `"}]}]}`
	text, ok := notebookText([]byte(cell))
	if !ok || strings.Count(text, "😀") != maxCellOutput/2 || !strings.Contains(text, "[... 8000 more characters]") {
		t.Errorf("%v %d: %.300s", ok, len(text), text)
	}
}

func FuzzNotebook(f *testing.F) {
	f.Add([]byte(notebook))
	f.Add([]byte(`{"cells":[{"outputs":[{"data":{"a":1},"text":[1]}],"source":null,"cell_type":"\n"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if text, ok := notebookText(data); ok && len(text) > 20*len(data)+100 {
			t.Errorf("%d bytes became %d", len(data), len(text))
		}
	})
}
