// Package cloud reaches models through the clouds that sell them: Anthropic's through Amazon Bedrock and Google Vertex
// AI, Google's through Vertex AI, OpenAI's through Azure. A cloud takes the request body of the maker: the packages of the
// makers build the body and read the reply. This package knows addresses, credentials, signatures and Bedrock's framing,
// and what a person can do about each cloud's refusals.
//
// Credentials are passed in. The package reads no files and no environment. It keeps an access token of Google's
// until shortly before the token ends. It uses Bedrock for models of Anthropic only, and Azure for models with
// OpenAI's APIs.
package cloud

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/internal/lazyregexp"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/anthropic"
	"github.com/roost-dev/roost/llm/wire"
)

// The providers' names.
const (
	Bedrock = "bedrock"
	Vertex  = "vertex"
	Azure   = "azure"
)

// BedrockOptions configure Amazon Bedrock. With an APIKey, a key of Bedrock's own, requests are not signed.
type BedrockOptions struct {
	wire.Options
	Region string // "" = the one in the host of BaseURL
	// Credentials returns the credentials that sign requests. It is called for each attempt, because other programs
	// renew them.
	Credentials func() (AWSCredentials, error)
}

// bedrockHost is the host of Bedrock in a region.
var bedrockHost = lazyregexp.New(`^https://bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\.(?:amazonaws\.com|api\.aws)`)

// regionForm is the form of a region's name. The name becomes a part of the host that gets the credentials.
var regionForm = lazyregexp.New(`^[a-z]{2,4}(-[a-z]+)+-\d{1,2}$`)

// NewBedrock makes a provider for Anthropic's models in Amazon Bedrock. The error is for a person.
func NewBedrock(o BedrockOptions) (llm.Provider, error) {
	// An address that names its region is signed for that one.
	if m := bedrockHost().FindStringSubmatch(o.BaseURL); m != nil {
		o.Region = m[1]
	}
	switch {
	case o.Region == "":
		return nil, errors.New("no region is named")
	case !regionForm().MatchString(o.Region):
		return nil, fmt.Errorf("%q is no region of AWS", o.Region)
	}
	if o.BaseURL == "" {
		o.BaseURL = "https://bedrock-runtime." + o.Region + ".amazonaws.com"
		if strings.HasPrefix(o.Region, "cn-") {
			o.BaseURL += ".cn"
		}
	}
	// Bedrock passes no pings on while a model thinks.
	o.IdleTimeout = cmp.Or(o.IdleTimeout, 10*time.Minute)
	now := o.Now
	if now == nil {
		now = time.Now
	}
	base, key := strings.TrimRight(o.BaseURL, "/"), strings.TrimSpace(o.APIKey)
	o.Door = &wire.Door{
		Name: Bedrock, Version: "bedrock-2023-05-31",
		Address: func(model string) string {
			return base + "/model/" + escape(model) + "/invoke-with-response-stream"
		},
		Authorize: func(_ context.Context, r *http.Request, body *wire.Body) ([]string, error) {
			r.Header.Set("Accept", "application/vnd.amazon.eventstream")
			if key != "" {
				r.Header.Set("Authorization", "Bearer "+key)
				return nil, nil
			}
			c, err := o.Credentials()
			if err != nil {
				return nil, err
			}
			sum, err := hashOf(body.Reader())
			sign(r, sum, c, o.Region, "bedrock", now())
			return []string{c.SecretAccessKey, c.SessionToken}, err
		},
		Events: func(r io.Reader) wire.EventReader { return &frames{from: r} },
		Refused: func(err *llm.Error, code string) {
			// AWS shows what it signed itself, which helps nobody and holds the session token.
			err.Message, _, _ = strings.Cut(err.Message, "\n\nThe Canonical String")
			code = strings.TrimSuffix(strings.ToLower(code), "exception")
			err.Kind = cmp.Or(bedrockKind(code, err.Message), err.Kind)
			err.Try = bedrockAdvice(o.Region, code, err)
		},
	}
	return anthropic.New(o.Options), nil
}

// bedrockKind classifies an error by the name of AWS's exception, in lower case; "" = the maker's classification
// counts. An error in a stream has no status.
func bedrockKind(exception, message string) llm.Kind {
	switch exception {
	case "throttling", "toomanyrequests":
		return llm.RateLimited
	case "modelnotready", "serviceunavailable":
		return llm.Overloaded
	case "modeltimeout", "modelstreamerror", "modelerror", "internalserver", "internalfailure":
		return llm.Server
	case "expiredtoken", "unrecognizedclient", "invalidsignature", "incompletesignature", "missingauthenticationtoken",
		"accessdenied", "invalidclienttokenid":
		return llm.Auth
	case "validation":
		if wire.IsOverflow(message) {
			return llm.ContextOverflow
		}
		return llm.Invalid
	case "resourcenotfound", "servicequotaexceeded":
		return llm.Invalid
	}
	return ""
}

// bedrockAdvice returns advice about a refusal. It depends on the message, because AWS gives most refusals of
// credentials the same name.
func bedrockAdvice(region, exception string, err *llm.Error) string {
	said := func(words ...string) bool { return saysOne(err.Message, words...) }
	switch {
	case said("signature expired", "signature not yet current"):
		return "set this machine's clock; it is more than five minutes off"
	case exception == "expiredtoken", said("security token included in the request is expired"):
		return "log in to AWS again (aws sso login, or where the session came from); the session token has expired"
	case said("signature we calculated does not match"):
		return "set AWS_SECRET_ACCESS_KEY to the secret of AWS_ACCESS_KEY_ID; they do not belong together"
	case exception == "unrecognizedclient", said("security token included in the request is invalid"):
		return "roost auth status bedrock  # AWS does not know that access key; a temporary one also needs AWS_SESSION_TOKEN"
	case said("api key is valid", "bearer token"):
		return "roost auth set bedrock  # Bedrock refuses the API key; short-term keys end after 12 hours"
	case said("on-demand throughput"):
		return "put the group of regions before the model's name: us., eu., apac. or global."
	case exception == "resourcenotfound", said("model identifier is invalid", "could not resolve the foundation model"):
		return "--model with a model that " + region + " has, or another region: roost config set providers.bedrock.region REGION"
	case said("access to the model", "model access"):
		return "ask for access to the model in the Bedrock console, for the region " + region
	case said("not authorized to perform"):
		return "allow the action bedrock:InvokeModelWithResponseStream for these credentials"
	case err.Kind == llm.Auth:
		return "roost auth status bedrock  # which credentials these were"
	}
	return ""
}

// saysOne reports whether a message contains one of some words, which are in lower case.
func saysOne(message string, words ...string) bool {
	message = strings.ToLower(message)
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(message, w) })
}
