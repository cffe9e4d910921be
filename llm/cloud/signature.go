package cloud

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
)

// AWSCredentials identify the account that AWS bills.
type AWSCredentials struct {
	AccessKeyID, SecretAccessKey string
	SessionToken                 string // of temporary credentials
}

// sign signs a request by AWS Signature Version 4, with all headers that it has so far. sum is the SHA-256 of its
// body. The request must have no query. AWS accepts a time that is up to five minutes wrong.
func sign(r *http.Request, sum string, c AWSCredentials, region, service string, now time.Time) {
	at := now.UTC().Format("20060102T150405Z")
	r.Header.Set("X-Amz-Date", at)
	if c.SessionToken != "" {
		r.Header.Set("X-Amz-Security-Token", c.SessionToken)
	}
	headers := map[string]string{"host": r.URL.Host}
	for name, values := range r.Header {
		for i, v := range values {
			values[i] = strings.Join(strings.Fields(v), " ")
		}
		headers[strings.ToLower(name)] = strings.Join(values, ",")
	}
	names := slices.Sorted(maps.Keys(headers))
	signed := strings.Join(names, ";")
	// The path is escaped as it is sent, and once more for the signature: all services but S3 want that.
	parts := api.Each(strings.Split(cmp.Or(r.URL.EscapedPath(), "/"), "/"), escape)
	request := r.Method + "\n" + strings.Join(parts, "/") + "\n\n"
	for _, name := range names {
		request += name + ":" + headers[name] + "\n"
	}
	request += "\n" + signed + "\n" + sum
	scope := at[:8] + "/" + region + "/" + service + "/aws4_request"
	digest := sha256.Sum256([]byte(request))
	text := "AWS4-HMAC-SHA256\n" + at + "\n" + scope + "\n" + hex.EncodeToString(digest[:])
	key := []byte("AWS4" + c.SecretAccessKey)
	for _, part := range append(strings.Split(scope, "/"), text) {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	r.Header.Set("Authorization", fmt.Sprintf("AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%x",
		c.AccessKeyID, scope, signed, key))
}

// hashOf returns the SHA-256 of a body, in hex.
func hashOf(body io.ReadCloser) (string, error) {
	defer body.Close()
	h := sha256.New()
	if _, err := io.Copy(h, body); err != nil {
		return "", fmt.Errorf("read the request's body: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// escape escapes a part of a path as AWS does: all bytes but letters, digits and -._~, also the : and / in the names of
// models.
func escape(part string) string { return strings.ReplaceAll(url.QueryEscape(part), "+", "%20") }
