package server

import (
	"mime"
	"slices"
	"strconv"
	"strings"
)

// accepts reports whether an Accept header allows a media type; no header allows all.
func accepts(headers []string, media string) bool {
	all := strings.Join(headers, ",")
	if strings.TrimSpace(all) == "" {
		return true
	}
	family, _, _ := strings.Cut(media, "/")
	best, taken := -1, false
	for _, one := range strings.Split(all, ",") {
		name, params, err := mime.ParseMediaType(one)
		if err != nil {
			continue
		}
		how := slices.Index([]string{"*/*", family + "/*", media}, name) // the most specific one counts
		if how < 0 || how < best {
			continue
		}
		q, err := strconv.ParseFloat(params["q"], 64)
		best, taken = how, err != nil || q > 0
	}
	return taken
}

// wantsStream reports whether an Accept header prefers events to a document.
func wantsStream(headers []string) bool {
	all := strings.Join(headers, ",")
	return strings.Contains(all, streamMedia) && accepts(headers, streamMedia) && !strings.Contains(all, jsonMedia)
}
