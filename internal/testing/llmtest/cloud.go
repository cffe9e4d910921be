package llmtest

import (
	"bytes"
	"cmp"
	"crypto"
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/internal/lazyregexp"
)

// Cloud is what a cloud lets in. Where it names nothing, everything that has the right form is let in; requests to
// Bedrock must then be signed with ExampleAWS in us-east-1.
type Cloud struct {
	AccessKey, Secret, Session string // of AWS
	SessionEnded               bool
	BedrockKey                 string
	Region                     string

	Models      []string // other models get what the cloud says of models that it does not have
	Deployments []string // of Azure
	Versions    []string // of Azure's API

	Project, Location string
	Token             string         // the access token that is good now; giveToken makes a new one
	Tokens            int            // how many were given
	TokenSeconds      int            // how long they are good; 0 = an hour
	Account           string         // a service account
	Public            *rsa.PublicKey // its key
	Refresh           string         // a user's refresh token

	Now func() time.Time // nil = time.Now
}

// ExampleAWS are the credentials of AWS's own documentation.
var ExampleAWS = struct{ AccessKey, Secret string }{"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}

type refusal struct {
	status        int
	code, message string
}

func (c Cloud) now() time.Time {
	if c.Now != nil {
		return c.Now()
	}
	return time.Now()
}

// Expect changes the key and what the clouds let in, also while another program may ask.
func (s *Server) Expect(key string, c Cloud) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Key, s.Cloud = key, c
}

// expected is the key that is let in now, "" = each.
func (s *Server) expected() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Key
}

// cloud is what is let in now.
func (s *Server) cloud() Cloud {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Cloud
}

var awsAuthorization = lazyregexp.New(
	`^AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})$`)

// admitAWS refuses as Bedrock does. It computes the signature from the request as it came over the wire.
func admitAWS(s *Server, r *http.Request, body []byte) *refusal {
	c := s.cloud()
	no := func(code, format string, args ...any) *refusal {
		return &refusal{403, code, fmt.Sprintf(format, args...)}
	}
	if token := bearer(r.Header); token != "" && !strings.HasPrefix(token, "AWS4") {
		if c.BedrockKey != "" && token != c.BedrockKey {
			return no("AccessDeniedException", "Authentication failed: Please make sure your API Key is valid.")
		}
		return c.admitModel(r)
	}
	m := awsAuthorization().FindStringSubmatch(r.Header.Get("Authorization"))
	if m == nil {
		return no("MissingAuthenticationTokenException", "Missing Authentication Token")
	}
	id, day, region, service, signed, signature := m[1], m[2], m[3], m[4], m[5], m[6]
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		return no("IncompleteSignatureException", "Date must be in ISO-8601 'basic format'. Got '%s'.", r.Header.Get("X-Amz-Date"))
	}
	iso := func(t time.Time) string { return t.UTC().Format("20060102T150405Z") }
	now, slack := c.now(), 5*time.Minute
	switch {
	case at.Before(now.Add(-slack)):
		return no("InvalidSignatureException", "Signature expired: %s is now earlier than %s (%s - 5 min.)", iso(at), iso(now.Add(-slack)), iso(now))
	case at.After(now.Add(slack)):
		return no("InvalidSignatureException", "Signature not yet current: %s is still later than %s (%s + 5 min.)", iso(at), iso(now.Add(slack)), iso(now))
	case day != iso(at)[:8]:
		return no("InvalidSignatureException", "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP")
	case region != cmp.Or(c.Region, "us-east-1"):
		return no("InvalidSignatureException", "Credential should be scoped to a valid region. ")
	case service != "bedrock":
		return no("InvalidSignatureException", "Credential should be scoped to correct service: 'bedrock'. ")
	case id != cmp.Or(c.AccessKey, ExampleAWS.AccessKey), r.Header.Get("X-Amz-Security-Token") != c.Session:
		return no("UnrecognizedClientException", "The security token included in the request is invalid.")
	case c.SessionEnded:
		return no("ExpiredTokenException", "The security token included in the request is expired")
	}
	names := strings.Split(signed, ";")
	for name := range r.Header {
		if low := strings.ToLower(name); strings.HasPrefix(low, "x-amz-") && !slices.Contains(names, low) {
			return no("InvalidSignatureException", "'%s' must be a 'SignedHeader' in the AWS Authorization.", name)
		}
	}
	if !slices.Contains(names, "host") || !slices.IsSorted(names) {
		return no("InvalidSignatureException", "'Host' or ':authority' must be a 'SignedHeader' in the AWS Authorization.")
	}
	path, query, _ := strings.Cut(r.RequestURI, "?")
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s\n%s\n%s\n", r.Method, escapeAgain(path), query)
	for _, name := range names {
		value := r.Header.Get(name)
		if name == "host" {
			value = r.Host
		}
		fmt.Fprintf(&text, "%s:%s\n", name, strings.TrimSpace(value))
	}
	fmt.Fprintf(&text, "\n%s\n%x", signed, sha256.Sum256(body))
	scope := strings.Join([]string{day, region, service, "aws4_request"}, "/")
	want := mac(mac(mac(mac(mac([]byte("AWS4"+cmp.Or(c.Secret, ExampleAWS.Secret)), day), region), service), "aws4_request"),
		fmt.Sprintf("AWS4-HMAC-SHA256\n%s\n%s\n%x", iso(at), scope, sha256.Sum256(text.Bytes())))
	if fmt.Sprintf("%x", want) != signature {
		return no("InvalidSignatureException", "The request signature we calculated does not match the signature you provided. "+
			"Check your AWS Secret Access Key and signing method. Consult the service documentation for details.\n\n"+
			"The Canonical String for this request should have been\n'%s'\n\nThe String-to-Sign should have been\n'AWS4-HMAC-SHA256'\n", text.String())
	}
	return c.admitModel(r)
}

// escapeAgain is a path as it was sent, escaped once more, as all services of AWS but S3 sign it.
func escapeAgain(path string) string {
	return regexp.MustCompile(`[^A-Za-z0-9/._~-]`).ReplaceAllStringFunc(path, func(c string) string { return fmt.Sprintf("%%%X", c) })
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// admitModel refuses models that Bedrock does not have, and those that it has in groups of regions only.
func (c Cloud) admitModel(r *http.Request) *refusal {
	model := r.PathValue("model")
	switch {
	case c.Models == nil || slices.Contains(c.Models, model):
		return nil
	case slices.ContainsFunc(c.Models, func(m string) bool { return strings.HasSuffix(m, "."+model) }):
		return &refusal{400, "ValidationException", "Invocation of model ID " + model + " with on-demand throughput isn’t supported. " +
			"Retry your request with the ID or ARN of an inference profile that contains this model."}
	}
	return &refusal{400, "ValidationException", "The provided model identifier is invalid."}
}

func writeAWSError(w http.ResponseWriter, status int, typ, message string) {
	if !strings.HasSuffix(typ, "Exception") {
		typ = map[int]string{
			400: "ValidationException", 403: "AccessDeniedException", 404: "ResourceNotFoundException", 408: "ModelTimeoutException",
			429: "ThrottlingException", 500: "InternalServerException", 503: "ServiceUnavailableException",
		}[status]
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Amzn-Errortype", typ+":http://internal.amazon.com/coral/com.amazon.bedrock/")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"message":%s}`, encode(message))
}

// asMessages is a request of a cloud's as Anthropic itself gets it, and what is wrong with what differs.
func asMessages(h http.Header, body []byte, version string, stream bool) (http.Header, []byte, string) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return h, body, "Malformed input request: " + err.Error()
	}
	_, model := members["model"]
	_, streams := members["stream"]
	switch {
	case model:
		return h, body, "model: Extra inputs are not permitted"
	case streams != stream:
		return h, body, "stream: Extra inputs are not permitted, or it is missing"
	case string(members["anthropic_version"]) != `"`+version+`"`:
		return h, body, "anthropic_version: Field required: " + version
	case h.Get("X-Api-Key") != "":
		return h, body, "x-api-key: no such header"
	}
	h = h.Clone()
	h.Set("Anthropic-Version", version)
	return h, append([]byte(`{"model":"m",`), body[1:]...), ""
}

// CheckBedrock is Check for Bedrock.
func CheckBedrock(h http.Header, body []byte) string {
	if len(body) > 20<<20 {
		return "Malformed input request: the body is too large"
	}
	h, body, problem := asMessages(h, body, "bedrock-2023-05-31", false)
	return cmp.Or(problem, Check(h, body))
}

// CheckVertexClaude is Check for Claude in Vertex AI.
func CheckVertexClaude(h http.Header, body []byte) string {
	h, body, problem := asMessages(h, body, "vertex-2023-10-16", true)
	return cmp.Or(problem, Check(h, body))
}

// CheckVertexGemini is CheckGoogle for Vertex AI, which knows no ids of calls.
func CheckVertexGemini(h http.Header, body []byte) string {
	if h.Get("X-Goog-Api-Key") != "" {
		return "API keys are not supported by this API. Expected OAuth2 access token"
	}
	var r struct {
		Contents []struct {
			Parts []map[string]map[string]json.RawMessage
		}
	}
	_ = json.Unmarshal(body, &r) // members of another shape have no id
	for i, c := range r.Contents {
		for j, p := range c.Parts {
			for name := range p {
				if _, is := p[name]["id"]; is {
					return fmt.Sprintf("Invalid JSON payload received. Unknown name \"id\" at 'contents[%d].parts[%d].%s': Cannot find field.", i, j, name)
				}
			}
		}
	}
	return CheckGoogle(h, body)
}

// CheckAzureChat is CheckChat for Azure's deployments, whose reasoning models take no max_tokens.
func CheckAzureChat(h http.Header, body []byte) string {
	if bytes.Contains(body, []byte(`"max_tokens":`)) {
		return "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
	}
	return CheckChat(h, body)
}

// bedrockEvents are a reply's stream as frames of AWS.
func (r Reply) bedrockEvents(req Request) [][]byte {
	events := r.events(req)
	for i, e := range events {
		_, data, _ := bytes.Cut(bytes.TrimSpace(e), []byte("\ndata: "))
		payload := fmt.Sprintf(`{"bytes":"%s","p":"abcdefghij"}`, base64.StdEncoding.EncodeToString(data))
		events[i] = Frame(payload, ":event-type", "chunk", ":content-type", "application/json", ":message-type", "event")
	}
	return events
}

func bedrockFailed(typ, message string) []byte {
	return Frame(`{"message":`+string(encode(message))+`}`, ":exception-type", typ, ":content-type", "application/json", ":message-type", "exception")
}

// Frame is a frame of AWS's event streams, with headers as names and values.
func Frame(payload string, headers ...string) []byte {
	var head []byte
	for i := 0; i < len(headers); i += 2 {
		head = append(append(head, byte(len(headers[i]))), headers[i]...)
		head = binary.BigEndian.AppendUint16(append(head, 7), uint16(len(headers[i+1])))
		head = append(head, headers[i+1]...)
	}
	f := binary.BigEndian.AppendUint32(nil, uint32(12+len(head)+len(payload)+4))
	f = binary.BigEndian.AppendUint32(f, uint32(len(head)))
	f = binary.BigEndian.AppendUint32(f, crc32.ChecksumIEEE(f))
	f = append(append(f, head...), payload...)
	return binary.BigEndian.AppendUint32(f, crc32.ChecksumIEEE(f))
}

const vertexPath = "/v1/projects/{project}/locations/{location}/publishers/"

// admitVertex refuses as Vertex AI does.
func admitVertex(s *Server, r *http.Request, _ []byte) *refusal {
	c := s.cloud()
	project, location := r.PathValue("project"), r.PathValue("location")
	model, method, _ := strings.Cut(r.PathValue("call"), ":")
	want := "streamRawPredict"
	if strings.Contains(r.URL.Path, "/publishers/google/") {
		want = "streamGenerateContent"
	}
	switch token := bearer(r.Header); {
	case token == "" || c.Token != "" && token != c.Token:
		return &refusal{401, "UNAUTHENTICATED", "Request had invalid authentication credentials. Expected OAuth 2 access token, " +
			"login cookie or other valid authentication credential."}
	case c.Project != "" && project != c.Project:
		return &refusal{403, "PERMISSION_DENIED", "Permission 'aiplatform.endpoints.predict' denied on resource " +
			"'//aiplatform.googleapis.com/projects/" + project + "/locations/" + location + "' (or it may not exist)."}
	case method != want || want == "streamGenerateContent" && r.URL.Query().Get("alt") != "sse":
		return &refusal{404, "NOT_FOUND", "The requested URL was not found on this server."}
	case c.Location != "" && location != c.Location, c.Models != nil && !slices.Contains(c.Models, model):
		return &refusal{404, "NOT_FOUND", "Publisher Model `projects/" + project + "/locations/" + location + "/publishers/anthropic/models/" +
			model + "` was not found or your project does not have access to it."}
	}
	return nil
}

// giveToken is the token server of Google: a claim of a service account, or a user's refresh token, for an access token.
func (s *Server) giveToken(w http.ResponseWriter, r *http.Request) {
	c := s.cloud()
	refuse := func(code, why string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"error":%q,"error_description":%q}`, code, why)
	}
	switch grant := r.FormValue("grant_type"); {
	case grant == "refresh_token" && r.FormValue("refresh_token") == c.Refresh && c.Refresh != "" && r.FormValue("client_id") != "":
	case grant == "refresh_token":
		refuse("invalid_grant", "Token has been expired or revoked.")
		return
	case grant == "urn:ietf:params:oauth:grant-type:jwt-bearer":
		if why := c.judgeClaim(r.FormValue("assertion"), s.URL+"/token"); why != "" {
			refuse("invalid_grant", why)
			return
		}
	default:
		refuse("unsupported_grant_type", "Invalid grant_type: "+grant)
		return
	}
	s.mu.Lock()
	s.Cloud.Tokens++
	s.Cloud.Token = fmt.Sprintf("ya29.test-%d", s.Cloud.Tokens)
	token := s.Cloud.Token
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"access_token":%q,"expires_in":%d,"token_type":"Bearer"}`, token, cmp.Or(c.TokenSeconds, 3599))
}

// judgeClaim is what is wrong with a service account's claim, "" for nothing.
func (c Cloud) judgeClaim(text, audience string) string {
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return "Invalid JWT: it must have three parts."
	}
	decode := func(part string) []byte {
		b, _ := base64.RawURLEncoding.DecodeString(part) // what is no base64 is no claim either
		return b
	}
	var head struct{ Alg, Typ string }
	var claim struct {
		Iss, Scope, Aud string
		Iat, Exp        int64
	}
	_, _ = json.Unmarshal(decode(parts[0]), &head), json.Unmarshal(decode(parts[1]), &claim)
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	now := c.now().Unix()
	switch {
	case head.Alg != "RS256" || head.Typ != "JWT":
		return "Invalid JWT: the algorithm must be RS256."
	case claim.Iss != c.Account || claim.Aud != audience || claim.Scope == "":
		return "Invalid JWT: iss, aud or scope."
	case c.Public == nil || rsa.VerifyPKCS1v15(c.Public, crypto.SHA256, sum[:], decode(parts[2])) != nil:
		return "Invalid JWT Signature."
	case claim.Iat > now+300 || claim.Exp < now || claim.Exp > claim.Iat+3600:
		return "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. " +
			"Check your iat and exp values in the JWT claim."
	}
	return ""
}

// admitAzure refuses as Azure OpenAI does.
func admitAzure(s *Server, r *http.Request, body []byte) *refusal {
	c := s.cloud()
	key, token := r.Header.Get("Api-Key"), bearer(r.Header)
	var of struct{ Model string }
	_ = json.Unmarshal(body, &of) // without a model there is no such deployment
	deployment := cmp.Or(r.PathValue("deployment"), of.Model)
	version := r.URL.Query().Get("api-version")
	dated := r.PathValue("deployment") != ""
	switch {
	case key == "" && !strings.HasPrefix(token, "eyJ") || key != "" && token != "" || strings.HasPrefix(key, "eyJ") || s.expected() != "" && key+token != s.expected():
		return &refusal{401, "401", "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid " +
			"key for an active subscription and use a correct regional API endpoint for your resource."}
	case dated && version == "", !dated && version != "" && version != "v1" && version != "preview":
		return &refusal{404, "404", "Resource not found"}
	case dated && c.Versions != nil && !slices.Contains(c.Versions, version):
		return &refusal{400, "BadRequest", "Unsupported api version. The supported api-versions are: " + strings.Join(c.Versions, ", ")}
	case c.Deployments != nil && !slices.Contains(c.Deployments, deployment):
		return &refusal{404, "DeploymentNotFound", "The API deployment for this resource does not exist. If you created the deployment " +
			"within the last 5 minutes, please wait a moment and try again."}
	}
	return nil
}

func writeAzureError(w http.ResponseWriter, status int, typ, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"error":{"code":%s,"message":%s}}`, encode(typ), encode(message))
}
