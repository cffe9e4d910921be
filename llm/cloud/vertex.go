package cloud

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/roost-dev/roost/internal/lazyregexp"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/anthropic"
	"github.com/roost-dev/roost/llm/catalogue"
	"github.com/roost-dev/roost/llm/google"
	"github.com/roost-dev/roost/llm/wire"
)

// VertexOptions configure Vertex AI. The model decides whose API is used.
type VertexOptions struct {
	wire.Options // APIKey is not used
	Project      string
	Location     string // a region, "us", "eu" or "global"
	Credentials  GoogleCredentials
}

// The forms of projects and locations. Both become parts of an address that gets the credentials.
var (
	projectForm  = lazyregexp.New(`^[a-z0-9][a-z0-9.:-]*$`)
	locationForm = lazyregexp.New(`^[a-z]+(-[a-z]+\d+)?$`)
)

// NewVertex makes a provider for a model in Vertex AI. The error is for a person.
func NewVertex(o VertexOptions) (llm.Provider, error) {
	base := strings.TrimRight(o.BaseURL, "/")
	if !strings.Contains(base, "/projects/") { // an address may hold both
		switch {
		case o.Project == "":
			return nil, errors.New("no project is named")
		case o.Location == "":
			return nil, errors.New("no location is named")
		case !projectForm().MatchString(o.Project):
			return nil, fmt.Errorf("%q is no id of a project", o.Project)
		case !locationForm().MatchString(o.Location):
			return nil, fmt.Errorf("%q is no location of Google's", o.Location)
		}
		base = cmp.Or(base, "https://"+vertexHost(o.Location)) + "/v1/projects/" + o.Project + "/locations/" + o.Location
	}
	if o.HTTPClient == nil {
		o.HTTPClient = &http.Client{Transport: wire.NewTransport()}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Credentials.Token = strings.TrimSpace(o.Credentials.Token)
	tokens := &tokens{of: o.Credentials, client: o.HTTPClient, now: o.Now}
	o.BaseURL = base
	o.Door = &wire.Door{
		Name: Vertex, Version: "vertex-2023-10-16",
		Address: func(model string) string {
			if maker, _ := catalogue.Maker(Vertex, model); maker == anthropic.Name {
				return base + "/publishers/anthropic/models/" + url.PathEscape(model) + ":streamRawPredict"
			}
			return base + "/publishers/google/models/" + url.PathEscape(model) + ":streamGenerateContent?alt=sse"
		},
		Authorize: func(ctx context.Context, r *http.Request, _ *wire.Body) ([]string, error) {
			token, err := tokens.get(ctx)
			if err != nil {
				return tokens.secrets(), err
			}
			r.Header.Set("Authorization", "Bearer "+token)
			if o.Credentials.QuotaProject != "" {
				r.Header.Set("X-Goog-User-Project", o.Credentials.QuotaProject)
			}
			return tokens.secrets(), nil
		},
		Refused: func(err *llm.Error, _ string) { err.Try = vertexAdvice(o, err.Status, err.Message) },
	}
	if maker, _ := catalogue.Maker(Vertex, o.Model); maker == anthropic.Name {
		return anthropic.New(o.Options), nil
	}
	return google.New(o.Options), nil
}

// vertexHost returns the host of a location.
func vertexHost(location string) string {
	switch location {
	case "global":
		return "aiplatform.googleapis.com"
	case "us", "eu": // all regions there
		return "aiplatform." + location + ".rep.googleapis.com"
	}
	return location + "-aiplatform.googleapis.com"
}

// vertexLogin is the command to run when Google refuses the credentials.
const vertexLogin = "gcloud auth application-default login"

func vertexAdvice(o VertexOptions, status int, message string) string {
	in := ""
	if o.Project != "" {
		in = " --project " + o.Project
	}
	switch {
	case status == http.StatusUnauthorized && o.Credentials.Token != "":
		return `export GOOGLE_OAUTH_ACCESS_TOKEN="$(gcloud auth print-access-token)"  # a token ends after an hour`
	case status == http.StatusUnauthorized:
		return vertexLogin + "  # or check the account's key in the credentials file"
	case saysOne(message, "has not been used in project", "it is disabled"):
		return "gcloud services enable aiplatform.googleapis.com" + in
	case status == http.StatusForbidden:
		return "give the account the role roles/aiplatform.user in the project"
	case status == http.StatusNotFound:
		return "enable the model in the project's Model Garden, or another location: " +
			"roost config set providers.vertex.location global"
	}
	return ""
}
