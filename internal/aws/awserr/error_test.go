package awserr_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	neturl "net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/joiner-sh/joiner/internal/aws/awserr"
)

// config returns the configuration of a client that calls url, without retries.
func config(url string) aws.Config {
	return aws.Config{Region: "us-east-1", BaseEndpoint: aws.String(url), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("AKIA", "secret", "")}
}

func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

func ec2Error(code, message string) string {
	return "<Response><Errors><Error><Code>" + code + "</Code><Message>" + message +
		"</Message></Error></Errors><RequestID>req-1</RequestID></Response>"
}

// TestClassify calls EC2 with the real SDK, so that the SDK's parsing of an answer is part of the test.
func TestClassify(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status               int
		body                 string
		wantKind             awserr.Kind
		wantReason, wantText string
	}{
		"denied by an SCP": {403, ec2Error("UnauthorizedOperation", "You are not authorized to perform this operation. User: x is not authorized to perform: ec2:DescribeImages with an explicit deny in a service control policy"),
			awserr.Denied, "Unauthorized", "ask its administrator"},
		"not allowed": {403, ec2Error("UnauthorizedOperation", "no identity-based policy allows the ec2:DescribeImages action"),
			awserr.Denied, "Unauthorized", "policy of the controller's role"},
		"bad key": {401, ec2Error("AuthFailure", "AWS was not able to validate the provided access credentials"),
			awserr.Denied, "InvalidCredentials", "AuthFailure"},
		"throttled": {503, ec2Error("RequestLimitExceeded", "Request limit exceeded."), awserr.Throttled,
			"RequestLimitExceeded", "[request req-1]"},
		"no such image": {400, ec2Error("InvalidAMIID.NotFound", "The image id '[ami-1]' does not exist"),
			awserr.Misconfigured, "AMINotFound", "spec.amiSelectorTerms"},
		"no such instance": {400, ec2Error("InvalidInstanceID.NotFound", "The instance ID 'i-1' does not exist"),
			awserr.Gone, "NotFound", "i-1"},
		"unknown code": {400, ec2Error("Invalid.Thing", "no"), awserr.Misconfigured, "InvalidThing", "Invalid.Thing: no"},
		"server error": {500, ec2Error("InternalError", "An internal error has occurred"), awserr.Transient,
			"InternalError", "internal error"},
		"server error with an unknown code": {503, ec2Error("Flux", "oh"), awserr.Transient, "InternalError", "Flux"},
		"empty answer":                      {502, "", awserr.Transient, "InternalError", "AWS failed"},
		"proxy page": {503, "<html><body>" + strings.Repeat("x", 10_000) + "</body></html>", awserr.Transient,
			"InternalError", "AWS failed"},
		"garbage":   {200, "\x00\x01 not xml", awserr.Transient, "UnreadableAnswer", "AWS_ENDPOINT_URL"},
		"cut short": {200, "<DescribeImagesResponse><imagesSet><item><imageId>ami", awserr.Transient, "UnreadableAnswer", "proxy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(answer(c.status, c.body))
			defer srv.Close()
			_, err := ec2.NewFromConfig(config(srv.URL)).DescribeImages(t.Context(), &ec2.DescribeImagesInput{})
			check(t, awserr.Classify("DescribeImages", err), c.wantKind, c.wantReason, c.wantText)
		})
	}
}

// check checks the kind and the reason of err, and that its text is one line with wantText.
func check(t *testing.T, err error, wantKind awserr.Kind, wantReason, wantText string) {
	t.Helper()
	e := awserr.Of(err)
	if e == nil || e.Kind != wantKind || e.Reason != wantReason {
		t.Fatalf("classified as %+v\nwant kind %s, reason %s", e, wantKind, wantReason)
	}
	line := e.Error()
	if !strings.Contains(line, wantText) || strings.Contains(line, "\n") || len(line) > 1000 {
		t.Errorf("%q has %d bytes, want one line of at most 1000 bytes with %q", line, len(line), wantText)
	}
}

func TestClassifyWithoutAnswer(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(answer(200, ""))
	url := srv.URL
	srv.Close()
	describe := func(ctx context.Context, cfg aws.Config) error {
		_, err := ec2.NewFromConfig(cfg).DescribeImages(ctx, &ec2.DescribeImagesInput{})
		return awserr.Classify("DescribeImages", err)
	}
	check(t, describe(t.Context(), config(url)), awserr.Transient, "Unreachable", "check the region's name")

	behindProxy := config("https://ec2.example.com")
	behindProxy.HTTPClient = &http.Client{Transport: &http.Transport{Proxy: func(*http.Request) (*neturl.URL, error) { return neturl.Parse(url) }}}
	check(t, describe(t.Context(), behindProxy), awserr.Transient, "ProxyUnreachable",
		"the proxy "+strings.TrimPrefix(url, "http://")+" cannot be reached: ")

	noCredentials := config(url)
	noCredentials.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{}, errors.New("no EC2 IMDS role found")
	})
	check(t, describe(t.Context(), noCredentials), awserr.Denied, "NoCredentials", "AWS_PROFILE")

	noRegion := config(url)
	noRegion.Region, noRegion.BaseEndpoint = "", nil
	check(t, describe(t.Context(), noRegion), awserr.Misconfigured, "NoRegion", "AWS_REGION")

	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	check(t, describe(canceled, config(url)), awserr.Canceled, "Canceled", "stopped")
}

// TestClassifyIAM checks an error of IAM, whose format differs from EC2's.
func TestClassifyIAM(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(answer(404, `<ErrorResponse xmlns="https://iam.amazonaws.com/doc/2010-05-08/"><Error><Type>Sender</Type><Code>NoSuchEntity</Code><Message>Instance Profile x cannot be found.</Message></Error><RequestId>r</RequestId></ErrorResponse>`))
	defer srv.Close()
	_, err := iam.NewFromConfig(config(srv.URL)).GetInstanceProfile(t.Context(),
		&iam.GetInstanceProfileInput{InstanceProfileName: aws.String("x")})
	check(t, awserr.Classify("GetInstanceProfile", err), awserr.Gone, "NotFound", "cannot be found")
}

// TestFromCode classifies errors in answers to CreateFleet. The messages are EC2's.
func TestFromCode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code, message string
		wantKind      awserr.Kind
		wantReason    string
	}{
		"no capacity": {"InsufficientInstanceCapacity", "We currently do not have sufficient m5.large capacity",
			awserr.Shortage, "InsufficientCapacity"},
		"spot": {"UnfulfillableCapacity", "Unable to fulfill capacity due to your request configuration.",
			awserr.Shortage, "InsufficientCapacity"},
		"quota":      {"VcpuLimitExceeded", "You have requested more vCPU capacity", awserr.Shortage, "VCPULimitExceeded"},
		"spot quota": {"MaxSpotInstanceCountExceeded", "Max spot instance count exceeded", awserr.Shortage, "SpotQuotaExceeded"},
		"addresses": {"InsufficientFreeAddressesInSubnet", "There are not enough free addresses in subnet 'subnet-1'",
			awserr.Shortage, "InsufficientFreeAddressesInSubnet"},
		"wrong zone": {"InvalidFleetConfiguration", "Your requested instance type (m7i.large) is not supported in your requested Availability Zone (us-east-1e).", awserr.Shortage, "Unsupported"},
		"spot role":  {"AuthFailure.ServiceLinkedRoleCreationNotPermitted", "The provided credentials do not have permission to create the service-linked role for EC2 Spot Instances.", awserr.Denied, "SpotSLRCreationFailed"},
		"two VPCs": {"InvalidParameter", "Security group sg-1 and subnet subnet-1 belong to different networks.",
			awserr.Misconfigured, "SecurityGroupSubnetVPCMismatch"},
		"long user data": {"InvalidParameterValue", "User data is limited to 16384 bytes", awserr.Misconfigured, "UserDataSizeLimitExceeded"},
		"new profile": {"InvalidParameterValue",
			"Value (x) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name", awserr.Transient,
			"InstanceProfileNameInvalid"},
		"empty profile": {"InvalidParameterValue", `IAM Instance Profile "arn" has no associated IAM Roles`,
			awserr.Transient, "InstanceProfileNameInvalid"},
		"architecture":  {"InvalidParameterValue", "The architecture 'arm64' of the specified instance type does not match the architecture 'x86_64' of the specified AMI.", awserr.Misconfigured, "ArchitectureMismatch"},
		"private image": {"AuthFailure", "Not authorized for images: [ami-1]", awserr.Denied, "AMIAuthorizationFailure"},
		"deleted template": {"InvalidLaunchTemplateName.NotFoundException",
			"At least one of the launch templates specified in the request does not exist.", awserr.Transient, "LaunchTemplateNotFound"},
		"spent token": {"IdempotentParameterMismatch", "Arguments on this idempotent request are inconsistent",
			awserr.InDoubt, "TokenSpent"},
		"free tier": {"InvalidParameterCombination", "The specified instance type is not eligible for Free Tier.",
			awserr.Misconfigured, "FreeTierIneligible"},
		"new account": {"PendingVerification", "Your request for accessing resources in this region is being validated",
			awserr.Denied, "AccountPendingVerification"},
		"client prefix": {"Client.InvalidKMSKey.InvalidState", "The KMS key provided is in an incorrect state",
			awserr.Misconfigured, "KMSKeyUnusable"},
		"fleet quota": {"MaxFleetCountExceeded", "", awserr.Shortage, "FleetQuotaExceeded"},
		"no such snapshot": {"InvalidSnapshot.NotFound", "The snapshot 'snap-1' does not exist.", awserr.Misconfigured,
			"BlockDeviceMappingInvalid"},
		"bad device": {"InvalidBlockDeviceMapping",
			"Volume of size 4GB is smaller than snapshot 'snap-1', expect size >= 20GB", awserr.Misconfigured, "BlockDeviceMappingInvalid"},
		"no volumes left":  {"InsufficientVolumeCapacity", "", awserr.Shortage, "InsufficientCapacity"},
		"not in that zone": {"VolumeTypeNotAvailableInZone", "", awserr.Shortage, "Unsupported"},
		"tag policy": {"TagPolicyViolation",
			"The tag policy does not allow the specified value for the following tag key: 'team'.", awserr.Misconfigured, "TagValidationFailed"},
		"no such group": {"InvalidPlacementGroup.Unknown", "The placement group 'pg' is unknown.", awserr.Misconfigured,
			"PlacementGroupNotFound"},
		"volume quota": {"VolumeLimitExceeded",
			"You have exceeded the maximum number of gp3 storage in TiB in this Region.", awserr.Misconfigured, "QuotaExceeded"},
		"throttled in a fleet": {"RequestLimitExceeded", "Request limit exceeded.", awserr.Throttled, "RequestLimitExceeded"},
		"unknown not found":    {"InvalidFlowLogId.NotFound", "", awserr.Gone, "NotFound"},
	} {
		e := awserr.FromCode("CreateFleet", c.code, c.message)
		if e.Kind != c.wantKind || e.Reason != c.wantReason {
			t.Errorf("%s: kind %s, reason %s; want %s, %s", name, e.Kind, e.Reason, c.wantKind, c.wantReason)
		}
	}
}

func TestOf(t *testing.T) {
	t.Parallel()
	if awserr.Of(nil) != nil || awserr.Classify("x", nil) != nil || awserr.Is(nil, awserr.Unknown) {
		t.Error("Of, Classify or Is treats nil as an error")
	}
	e := awserr.Refusedf("TerminateInstances", "NotOurs", "instance %s", "i-1")
	wrapped := fmt.Errorf("outer: %w", e)
	if awserr.Of(wrapped) != e || !awserr.Is(wrapped, awserr.Refused) || !errors.Is(awserr.Classify("other", wrapped), e) {
		t.Error("Of, Is or Classify does not find the classified error in an error that wraps it")
	}
	if got := awserr.Of(errors.New("plain")); got.Kind != awserr.Unknown || got.Message != "plain" {
		t.Errorf("a plain error became %+v, want kind Unknown and the message plain", got)
	}
	specific := awserr.MostSpecific(nil, awserr.FromCode("x", "InsufficientInstanceCapacity", ""),
		awserr.FromCode("x", "UnauthorizedOperation", ""), awserr.FromCode("x", "InternalError", ""))
	if specific.Kind != awserr.Denied {
		t.Errorf("MostSpecific returns %s, want Denied", specific.Kind)
	}
}

// TestRequestID: an answer with status 200 but without EC2's request ID, such as a proxy's web page, is not read as an
// empty list. Both answers have the same body: only the header decides.
func TestRequestID(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		header   string
		wantKind awserr.Kind // empty: no error
	}{
		"no request ID": {"", awserr.Transient},
		"request ID":    {"x-amzn-RequestId", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if c.header != "" {
					w.Header().Set(c.header, "id")
				}
				_, _ = w.Write([]byte("<html><body>Welcome</body></html>"))
			}))
			defer srv.Close()
			_, err := ec2.NewFromConfig(awserr.ClientConfig(config(srv.URL))).DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{})
			if c.wantKind == "" {
				if err != nil {
					t.Errorf("an answer with a request ID causes the error %v, want none", err)
				}
				return
			}
			check(t, awserr.Classify("DescribeInstances", err), c.wantKind, "UnreadableAnswer", "request id")
		})
	}
}
