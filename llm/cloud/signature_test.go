package cloud

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The examples that AWS publishes, with its example credentials.
func TestPublishedSignatures(t *testing.T) {
	keys := AWSCredentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
	at := time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC)
	for name, c := range map[string]struct{ method, media, body, signed, want string }{
		"get-vanilla":  {"GET", "", "", "host;x-amz-date", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		"post-vanilla": {"POST", "", "", "host;x-amz-date", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
		"post-x-www-form-urlencoded": {
			"POST", "application/x-www-form-urlencoded", "Param1=value1", "content-type;host;x-amz-date",
			"ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
		},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, "https://example.amazonaws.com/", nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.media != "" {
			r.Header.Set("Content-Type", c.media)
		}
		sum := sha256.Sum256([]byte(c.body))
		sign(r, hex.EncodeToString(sum[:]), keys, "us-east-1", "service", at)
		want := "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=" + c.signed + ", Signature=" + c.want
		if got := r.Header.Get("Authorization"); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, want)
		}
	}
}

// A session token is sent and signed; the time is that of UTC.
func TestSignedSession(t *testing.T) {
	r, err := http.NewRequestWithContext(t.Context(), "POST", "https://example.amazonaws.com", nil)
	if err != nil {
		t.Fatal(err)
	}
	east := time.FixedZone("east", 3600)
	sign(r, "", AWSCredentials{AccessKeyID: "A", SecretAccessKey: "s", SessionToken: "session"}, "eu-west-1", "bedrock", time.Date(2026, 1, 2, 0, 30, 0, 0, east))
	if got := r.Header.Get("X-Amz-Date"); got != "20260101T233000Z" {
		t.Errorf("dated %s, want 20260101T233000Z", got)
	}
	got := r.Header.Get("Authorization")
	if r.Header.Get("X-Amz-Security-Token") != "session" || !strings.Contains(got, "SignedHeaders=host;x-amz-date;x-amz-security-token,") ||
		!strings.Contains(got, "Credential=A/20260101/eu-west-1/bedrock/aws4_request,") {
		t.Errorf("got %s, want the session token signed, in the scope 20260101/eu-west-1/bedrock", got)
	}
}

func TestEscapedModels(t *testing.T) {
	for model, want := range map[string]string{
		"anthropic.claude-sonnet-4-6":                                      "anthropic.claude-sonnet-4-6",
		"us.anthropic.claude-sonnet-4-5-20250929-v1:0":                     "us.anthropic.claude-sonnet-4-5-20250929-v1%3A0",
		"arn:aws:bedrock:us-east-1:123456789012:inference-profile/eu.an.x": "arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Ainference-profile%2Feu.an.x",
		"a b+c~_é": "a%20b%2Bc~_%C3%A9", "../../x?y#z": "..%2F..%2Fx%3Fy%23z",
	} {
		if got := escape(model); got != want {
			t.Errorf("%s: got %s, want %s", model, got, want)
		}
	}
}
