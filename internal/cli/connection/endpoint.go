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
	if at := aws.ToString(cfg.BaseEndpoint); !isEndpoint(at) {
		name := endpointVariable
		if os.Getenv(name) != at {
			name = "endpoint_url of your AWS configuration,"
		}
		return noEndpoint(name, at)
	}
	if strings.EqualFold(os.Getenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"), "true") {
		return nil
	}
	for _, service := range []string{"ARC_ZONAL_SHIFT", "EC2", "EKS", "IAM", "PRICING", "SQS", "SSM", "STS"} {
		name := endpointVariable + "_" + service
		if at := os.Getenv(name); !isEndpoint(at) {
			return noEndpoint(name, at)
		}
	}
	return nil
}

// isEndpoint reports whether the SDK can use an endpoint. The empty string selects the default of the SDK.
func isEndpoint(at string) bool {
	address, err := url.Parse(at)
	return at == "" || err == nil && address.Host != "" && (address.Scheme == "http" || address.Scheme == "https")
}

// noEndpoint returns the error about the invalid endpoint at; name is the variable or field that has it. It hides
// everything before the last @, because that may contain a password, and diagnosis.MaskURLs does not find every
// password in an invalid URL.
func noEndpoint(name, at string) error {
	if end := strings.LastIndex(at, "@"); end >= 0 {
		at = diagnosis.Hidden + at[end:]
	}
	return fmt.Errorf("reach AWS: %s %q is no address; write for instance https://HOST, or leave it out", name, at)
}
