package export

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/internal/testing/conformance"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
)

// Every real task folder can be exported in every form: the forms for programs hold
// every byte, the page is inert, and the folder is as it was.
func TestCorpusExport(t *testing.T) {
	folders := conformance.CorpusFolders(t, roofmt.IsFolder)
	conformance.CorpusTally(t, folders, func(t *testing.T, dir string) {
		before := tree(t, dir)
		st, err := store.Open(store.Options{Root: filepath.Join(t.TempDir(), "root"), Cache: t.TempDir(), Sources: []string{dir}})
		fixture.NoError(t, err)
		refs, err := st.Refs(t.Context())
		fixture.NoError(t, err)
		if len(refs) != 1 {
			t.Fatalf("%d tasks in one folder", len(refs))
		}
		v, err := st.Read(t.Context(), refs[0])
		fixture.NoError(t, err)
		defer v.Close()
		o := Options{Mask: redact.New()}
		_, err = Markdown(t.Context(), io.Discard, v, o)
		fixture.NoError(t, err)
		var page, text bytes.Buffer
		_, err = HTML(t.Context(), &page, v, o)
		fixture.NoError(t, err)
		inert(t, page.String())
		_, err = JSON(t.Context(), &text, v, Options{})
		fixture.NoError(t, err)
		var got struct{ UI, API []json.RawMessage }
		fixture.NoError(t, json.Unmarshal(text.Bytes(), &got))
		if len(got.UI) != v.Summary.Messages.UI || len(got.API) != v.Summary.Messages.API {
			t.Errorf("%d and %d elements of %+v", len(got.UI), len(got.API), v.Summary.Messages)
		}
		archived(t, v)
		out := filepath.Join(t.TempDir(), "out")
		_, err = Folder(t.Context(), out, v)
		fixture.NoError(t, err)
		for _, name := range []string{roofmt.UIName, roofmt.APIName, roofmt.ItemName, roofmt.MetadataName} {
			want, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || !json.Valid(want) {
				continue
			}
			if got, err := os.ReadFile(filepath.Join(out, name)); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s is not the same: %v", name, err)
			}
		}
		if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
			t.Errorf("exporting changed the folder: %s", diff)
		}
	})
}
