package cloud

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/openai"
	"github.com/roost-dev/roost/llm/wire"
)

// AzureOptions configure Azure OpenAI. BaseURL is the resource's address (https://NAME.openai.azure.com). The model of a
// request is the name of a deployment. APIKey is a key of the resource, or an access token of Entra ID.
type AzureOptions struct {
	wire.Options
	// APIVersion selects chat completions of that version; "" or "v1" = the Responses API, which has no versions.
	APIVersion string
}

// NewAzure makes a provider for models that Azure deploys. The error is for a person.
func NewAzure(o AzureOptions) (llm.Provider, error) {
	if o.BaseURL == "" {
		return nil, errors.New("no address is named")
	}
	base := strings.TrimRight(o.BaseURL, "/")
	v1 := o.APIVersion == "" || o.APIVersion == "v1" || strings.HasSuffix(base, "/openai/v1")
	base = strings.TrimSuffix(strings.TrimSuffix(base, "/v1"), "/openai")
	key := strings.TrimSpace(o.APIKey)
	token := strings.HasPrefix(key, "eyJ") && strings.Count(key, ".") == 2 // a JWT; keys have no dots
	o.Compatible = !v1
	o.Door = &wire.Door{
		Name: Azure,
		Address: func(deployment string) string {
			if v1 {
				return base + "/openai/v1/responses"
			}
			return base + "/openai/deployments/" + url.PathEscape(deployment) + "/chat/completions?api-version=" +
				url.QueryEscape(o.APIVersion)
		},
		Authorize: func(_ context.Context, r *http.Request, _ *wire.Body) ([]string, error) {
			if token {
				r.Header.Set("Authorization", "Bearer "+key)
			} else {
				r.Header.Set("Api-Key", key)
			}
			return nil, nil
		},
		Refused: func(err *llm.Error, code string) { err.Try = azureAdvice(token, err.Status, code, err.Message) },
	}
	return openai.New(o.Options), nil
}

func azureAdvice(token bool, status int, code, message string) string {
	switch {
	case code == "DeploymentNotFound", saysOne(message, "api deployment for this resource does not exist"):
		return "--model with the name of a deployment, which may differ from its model's; a new one takes some minutes"
	case saysOne(message, "api version", "api-version"):
		return "roost config set providers.azure.api_version 2024-10-21  # or unset it, for the v1 API"
	case status == http.StatusUnauthorized && token:
		return "az account get-access-token --resource https://cognitiveservices.azure.com  # a token ends after an hour"
	case status == http.StatusUnauthorized:
		return "roost auth set azure  # and the address of that key's resource: roost config set providers.azure.base_url URL"
	case status == http.StatusForbidden:
		return "give the account the role Cognitive Services OpenAI User, or use the resource's network"
	case status == http.StatusNotFound:
		return "roost config set providers.azure.base_url https://NAME.openai.azure.com  # the resource's address alone"
	}
	return ""
}
