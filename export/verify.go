package export

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// ErrArchive is wrapped by errors about an archive that is not whole, or is none of
// ours.
var ErrArchive = errors.New("not a whole archive of tasks")

// maxManifest bounds what is believed of a file that says it is an archive.
const maxManifest = 256 << 20

// ReadManifest reads what an archive says of itself. Nothing is checked by it but
// that.
func ReadManifest(r io.ReaderAt, size int64) (*zip.Reader, Manifest, error) {
	var m Manifest
	files, err := zip.NewReader(r, size)
	if err != nil {
		return nil, m, fmt.Errorf("%w: %v", ErrArchive, err)
	}
	in, err := files.Open(ManifestName)
	if err != nil {
		return nil, m, fmt.Errorf("%w: it has no %s", ErrArchive, ManifestName)
	}
	defer in.Close() //nolint:errcheck // it was only read
	if err := json.NewDecoder(io.LimitReader(in, maxManifest)).Decode(&m); err != nil {
		return nil, m, fmt.Errorf("%w: read %s: %v", ErrArchive, ManifestName, err)
	}
	if m.Format != ArchiveFormat || m.Version != 1 {
		return nil, m, fmt.Errorf("%w: format %q, version %d", ErrArchive, m.Format, m.Version)
	}
	return files, m, nil
}

// VerifyArchive reads every file of an archive and compares it with the manifest: the
// same files, the same sizes, the same sums.
func VerifyArchive(ctx context.Context, r io.ReaderAt, size int64) (Manifest, error) {
	files, m, err := ReadManifest(r, size)
	if err != nil {
		return m, err
	}
	want := make(map[string]ArchivedFile, len(m.Files))
	for _, f := range m.Files {
		want[f.Path] = f
	}
	for _, f := range files.File {
		if f.Name == ManifestName {
			continue
		}
		expected, ok := want[f.Name]
		if !ok {
			return m, fmt.Errorf("%w: %s is in it and not in its list, or twice", ErrArchive, f.Name)
		}
		delete(want, f.Name)
		if err := same(ctx, f, expected); err != nil {
			return m, err
		}
	}
	for name := range want {
		return m, fmt.Errorf("%w: %s is in its list and not in it", ErrArchive, name)
	}
	return m, nil
}

func same(ctx context.Context, f *zip.File, want ArchivedFile) error {
	in, err := f.Open()
	if err != nil {
		return fmt.Errorf("%w: open %s: %v", ErrArchive, f.Name, err)
	}
	defer in.Close()
	sum := sha256.New()
	read := &reading{r: io.LimitReader(in, want.Size+1), ctx: ctx}
	n, err := io.Copy(sum, read)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("%w: read %s: %v", ErrArchive, f.Name, err)
	case n != want.Size || hex.EncodeToString(sum.Sum(nil)) != want.SHA256:
		return fmt.Errorf("%w: %s has other bytes than were put into it", ErrArchive, f.Name)
	}
	return nil
}
