// Package apirules checks a list of messages against what the Anthropic Messages
// API documents, so that tests and loopback servers refuse what the real API
// would refuse.
//
// It is written apart from the builder of requests, and decodes with
// encoding/json, so that a mistake in one is not repeated in the other. It is
// stricter than the API in two places: the first and the last message must be
// the user's, and adjacent messages must not have the same role (the API joins
// them). It does not check sizes, numbers of images or signatures.
package apirules

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/roost-dev/roost/llm"
)

// ErrInvalid is wrapped by every error of Validate.
var ErrInvalid = errors.New("invalid request")

var (
	idForm   = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	nameForm = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
	mediaOK  = map[string]bool{"image/jpeg": true, "image/png": true, "image/gif": true, "image/webp": true}
)

// Validate returns nil for messages that the API takes. The error names the
// message, the block and the rule, and wraps ErrInvalid.
func Validate(messages []llm.Message) error {
	if len(messages) == 0 {
		return bad("messages: at least one message is required")
	}
	used := make(map[string]bool)
	var pending []string
	for i, m := range messages {
		at := fmt.Sprintf("messages.%d", i)
		want := "user"
		if i%2 == 1 {
			want = "assistant"
		}
		if m.Role != want {
			return bad("%s: role is %q, must be %q (the first is the user's, then they alternate)", at, m.Role, want)
		}
		calls, results, err := content(at, m)
		if err != nil {
			return err
		}
		if err := pairs(at, pending, results); err != nil {
			return err
		}
		for _, id := range calls {
			if used[id] {
				return bad("%s: tool_use ids must be unique: %q", at, id)
			}
			used[id] = true
		}
		pending = calls
	}
	if messages[len(messages)-1].Role != "user" {
		return bad("messages: the last message must be the user's")
	}
	return nil
}

// pairs: the results answer exactly the calls of the message before.
func pairs(at string, pending, results []string) error {
	open := make(map[string]bool, len(pending))
	for _, id := range pending {
		open[id] = true
	}
	for _, id := range results {
		if !open[id] {
			return bad("%s: unexpected tool_result for %q", at, id)
		}
		delete(open, id)
	}
	for id := range open {
		return bad("%s: tool_use %q has no tool_result in the next message", at, id)
	}
	return nil
}

func content(at string, m llm.Message) (calls, results []string, err error) {
	if err := text(at, m.Content); err != nil {
		return nil, nil, err
	}
	var s string
	if json.Unmarshal(m.Content, &s) == nil && len(m.Content) > 0 && bytes.TrimSpace(m.Content)[0] == '"' {
		if blank(s) {
			return nil, nil, bad("%s: content must not be empty", at)
		}
		return nil, nil, nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(m.Content, &list); err != nil || len(list) == 0 {
		return nil, nil, bad("%s: content must be a string or a list of at least one block", at)
	}
	front := true
	for k, raw := range list {
		where := fmt.Sprintf("%s.content.%d", at, k)
		typ, id, err := block(where, m.Role, raw)
		if err != nil {
			return nil, nil, err
		}
		switch typ {
		case "tool_use":
			calls = append(calls, id)
		case "tool_result":
			if !front {
				return nil, nil, bad("%s: tool_result blocks must come first", where)
			}
			results = append(results, id)
		}
		front = front && typ == "tool_result"
		if k == len(list)-1 && strings.HasSuffix(typ, "thinking") {
			return nil, nil, bad("%s: the final block must not be thinking", where)
		}
	}
	return calls, results, nil
}

// text: valid UTF-8 and JSON without lone surrogates.
func text(at string, raw []byte) error {
	if !utf8.Valid(raw) {
		return bad("%s: not UTF-8", at)
	}
	if !json.Valid(raw) {
		return bad("%s: not JSON", at)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	for {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			return bad("%s: %v", at, err)
		}
	}
	for i := 0; i+1 < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if raw[i+1] != 'u' {
			i++
			continue
		}
		u := string(bytes.ToLower(raw[i+2 : i+6]))
		switch {
		case u < "d800" || u > "dfff":
			i += 5
		case u < "dc00" && i+12 <= len(raw) && raw[i+6] == '\\' && raw[i+7] == 'u' &&
			string(bytes.ToLower(raw[i+8:i+10])) >= "dc" && string(bytes.ToLower(raw[i+8:i+10])) <= "df":
			i += 11
		default:
			return bad("%s: lone surrogate in a string", at)
		}
	}
	return nil
}

func block(at, role string, raw []byte) (typ, id string, err error) {
	var f map[string]json.RawMessage
	if err := json.Unmarshal(raw, &f); err != nil || f == nil {
		return "", "", bad("%s: a content block must be an object", at)
	}
	typ, _ = stringAt(f, "type")
	if allowed := map[string]string{"text": "user assistant", "image": "user", "tool_result": "user", "tool_use": "assistant",
		"thinking": "assistant", "redacted_thinking": "assistant"}[typ]; !strings.Contains(allowed, role) || allowed == "" {
		return "", "", bad("%s: a %q block is not allowed for the role %s", at, typ, role)
	}
	switch typ {
	case "text":
		s, ok := stringAt(f, "text")
		if !ok || blank(s) {
			return "", "", bad("%s: text content blocks must contain non-whitespace text", at)
		}
		return typ, "", only(at, f, "type text cache_control")
	case "image":
		return typ, "", image(at, f)
	case "tool_use":
		id, _ = stringAt(f, "id")
		name, _ := stringAt(f, "name")
		var input map[string]json.RawMessage
		if !idForm.MatchString(id) || !nameForm.MatchString(name) {
			return "", "", bad("%s: tool_use id %q or name %q does not match the pattern", at, id, name)
		}
		if err := json.Unmarshal(f["input"], &input); err != nil || input == nil {
			return "", "", bad("%s: tool_use.input must be an object", at)
		}
		return typ, id, only(at, f, "type id name input cache_control")
	case "tool_result":
		id, _ = stringAt(f, "tool_use_id")
		if !idForm.MatchString(id) {
			return "", "", bad("%s: tool_use_id %q does not match the pattern", at, id)
		}
		return typ, id, result(at, f)
	case "thinking":
		_, ok := stringAt(f, "thinking")
		sig, _ := stringAt(f, "signature")
		if !ok || sig == "" {
			return "", "", bad("%s: thinking needs its text and a signature", at)
		}
		return typ, "", only(at, f, "type thinking signature")
	}
	if data, _ := stringAt(f, "data"); data == "" {
		return "", "", bad("%s: redacted_thinking needs data", at)
	}
	return typ, "", only(at, f, "type data")
}

func result(at string, f map[string]json.RawMessage) error {
	isError := false
	if raw, ok := f["is_error"]; ok {
		if err := json.Unmarshal(raw, &isError); err != nil || string(raw) == "null" {
			return bad("%s: is_error must be true or false", at)
		}
	}
	if raw, ok := f["content"]; ok {
		var list []json.RawMessage
		s, isString := stringAt(f, "content")
		if !isString && (json.Unmarshal(raw, &list) != nil || list == nil) {
			return bad("%s: the content of a tool_result must be a string or a list", at)
		}
		if isError && s == "" && len(list) == 0 {
			return bad("%s: content cannot be empty if is_error is true", at)
		}
		for k, item := range list {
			where := fmt.Sprintf("%s.content.%d", at, k)
			typ, _, err := block(where, "user", item)
			if err != nil {
				return err
			}
			if typ == "tool_result" {
				return bad("%s: a tool_result must not hold another one", where)
			}
			if isError && typ != "text" {
				return bad("%s: all content must be text if is_error is true", where)
			}
		}
	}
	return only(at, f, "type tool_use_id content is_error cache_control")
}

func image(at string, f map[string]json.RawMessage) error {
	var src map[string]json.RawMessage
	if err := json.Unmarshal(f["source"], &src); err != nil {
		return bad("%s: image.source must be an object", at)
	}
	typ, _ := stringAt(src, "type")
	media, _ := stringAt(src, "media_type")
	data, _ := stringAt(src, "data")
	if typ != "base64" || !mediaOK[media] {
		return bad("%s: image source %q of type %q is not supported", at, typ, media)
	}
	if _, err := base64.StdEncoding.DecodeString(data); err != nil || data == "" {
		return bad("%s: image data is not base64", at)
	}
	if err := only(at, src, "type media_type data"); err != nil {
		return err
	}
	return only(at, f, "type source cache_control")
}

func stringAt(f map[string]json.RawMessage, key string) (string, bool) {
	raw, ok := f[key]
	if !ok || len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	var s string
	return s, json.Unmarshal(raw, &s) == nil
}

// only: no members that the API does not know ("Extra inputs are not permitted").
func only(at string, f map[string]json.RawMessage, names string) error {
	for key := range f {
		if !strings.Contains(" "+names+" ", " "+key+" ") {
			return bad("%s: extra member %q is not permitted", at, key)
		}
	}
	return nil
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

func bad(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}
