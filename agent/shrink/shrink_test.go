package shrink

import (
	"fmt"
	"strings"
	"testing"

	"github.com/roost-dev/roost/contextwindow"
)

// An image counts by its tokens wherever sizes are bytes, whatever its file's size is.
func TestAnImageCountsByItsTokens(t *testing.T) {
	const image = `{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%s"}}]}`
	for _, data := range []string{"AAAA", strings.Repeat("A", 1<<20)} {
		got := contextwindow.EstimateTokens(Size([][]byte{fmt.Appendf(nil, image, data)}))
		if got < ImageTokens || got > ImageTokens+50 {
			t.Errorf("got %d tokens for an image of %d bytes, want %d and a few", got, len(data), ImageTokens)
		}
	}
}
