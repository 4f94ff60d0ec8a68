package connection

import (
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/joiner-sh/joiner/internal/diagnosis"
)

// endpointVariable is the AWS SDK's variable for the endpoint of all services. With a suffix, such as _EC2, the
// variable is for the endpoint of one service.
const endpointVariable = "AWS_ENDPOINT_URL"

// EndpointProblem returns an error that names the first variable with an invalid endpoint; nil if all are valid. The
// SDK retries an invalid endpoint for seconds, and its error does not name the variable.
func EndpointProblem(cfg aws.Config) error {
	if endpoint := aws.ToString(cfg.BaseEndpoint); !isEndpoint(endpoint) {
		name := endpointVariable
		if os.Getenv(name) != endpoint {
			name = "endpoint_url in your AWS configuration"
		}
		return invalidEndpoint(name, endpoint)
	}
	if strings.EqualFold(os.Getenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"), "true") {
		return nil
	}
	// The services that Joiner calls.
	for _, service := range []string{"ARC_ZONAL_SHIFT", "EC2", "EKS", "IAM", "PRICING", "SQS", "SSM", "STS"} {
		name := endpointVariable + "_" + service
		if endpoint := os.Getenv(name); !isEndpoint(endpoint) {
			return invalidEndpoint(name, endpoint)
		}
	}
	return nil
}

// isEndpoint reports whether the SDK can use an endpoint. The empty string selects the default of the SDK.
func isEndpoint(endpoint string) bool {
	address, err := url.Parse(endpoint)
	return endpoint == "" || err == nil && address.Host != "" && (address.Scheme == "http" || address.Scheme == "https")
}

// invalidEndpoint returns the error about an invalid endpoint. name is the variable or field that has the endpoint. The
// error hides the part of the endpoint before the last @, which may contain a password: diagnosis.MaskURLs does not
// find every password in an invalid URL.
func invalidEndpoint(name, endpoint string) error {
	if end := strings.LastIndex(endpoint, "@"); end >= 0 {
		endpoint = diagnosis.Hidden + endpoint[end:]
	}
	return fmt.Errorf("reach AWS: %s is %q, which is not an address; write for example https://HOST, or leave it out", name, endpoint)
}
