package emulator

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/emulator/api"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
	"github.com/joiner-sh/joiner/internal/emulator/world/site"
)

// normalSkew and longSkew limit the difference between the time of a signature and the server's time. It is 5 minutes
// (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html), and 15 minutes for EC2
// (https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html). A presigned call of STS is also valid
// for 15 minutes, whatever its X-Amz-Expires. So EKS tokens are valid for 15 minutes, although they request 60 seconds.
const (
	normalSkew = 5 * time.Minute
	longSkew   = 15 * time.Minute
)

// clusterHeader is the header with the cluster's name in the presigned request of an EKS token.
const clusterHeader = "X-K8s-Aws-Id"

// authenticate returns the caller of a request. For an access key that the world issued, it verifies the signature. An
// unknown access key identifies the role Server.UnknownKeyRole in the account of accountOf; if UnknownKeyRole is empty,
// the administrator of this account. But an unknown key is an error in any of these cases:
//   - the server is strict
//   - the request has a session token, which only the world issues
//   - the request is presigned, because its purpose is to prove an identity
func (s *Server) authenticate(w *world.World, now time.Time, r *http.Request, c *api.Call) (identity.Identity, error) {
	sig, err := readSignature(r)
	if errors.Is(err, errUnsigned) {
		return identity.Identity{}, api.Forbidden("MissingAuthenticationToken", "Request is missing Authentication Token")
	}
	if err != nil {
		return identity.Identity{}, &failure.Error{Code: "IncompleteSignature", Message: err.Error()}
	}
	session, known := w.SessionByKey(sig.accessKey)
	if !known && (s.Strict || sig.presigned || sig.token != "") {
		return identity.Identity{}, invalidKeyError(c.Service)
	}
	if !known && s.UnknownKeyRole != "" {
		account := accountOf(sig.accessKey)
		return identity.Identity{
			Account: account,
			Role:    s.UnknownKeyRole,
			ARN:     "arn:" + site.Partition(c.RegionID) + ":sts::" + account + ":assumed-role/" + s.UnknownKeyRole + "/unknown",
		}, nil
	}
	if !known {
		return identity.Root(accountOf(sig.accessKey), c.RegionID), nil
	}
	if session.Token != sig.token || !w.IsValid(session) {
		return identity.Identity{}, invalidKeyError(c.Service)
	}
	if err := verify(now, session, sig, r, c); err != nil {
		return identity.Identity{}, err
	}
	return session.Identity, nil
}

// verify rejects a request in any of these cases:
//   - the session has expired
//   - the signature is wrong, or does not cover all required headers
//   - the time of the signature is too far from the server's time
func verify(now time.Time, session identity.Session, sig signature, r *http.Request, c *api.Call) error {
	if !session.Expires.IsZero() && !now.Before(session.Expires) {
		return expiredError(c)
	}
	if err := checkTime(now, sig, c); err != nil {
		return err
	}
	if r.Header.Get(clusterHeader) != "" && !slices.Contains(sig.headers, strings.ToLower(clusterHeader)) {
		return api.Forbidden("SignatureDoesNotMatch", "The header "+strings.ToLower(clusterHeader)+" is not signed.")
	}
	if !slices.Contains(sig.headers, "host") || !sig.matches(session.SecretKey, r, c.Body) {
		return api.Forbidden("SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details.")
	}
	return nil
}

func checkTime(now time.Time, sig signature, c *api.Call) error {
	maxSkew := normalSkew
	if c.Service == "ec2" || sig.presigned {
		maxSkew = longSkew
	}
	var message string
	switch {
	case now.After(sig.at.Add(maxSkew)):
		message = fmt.Sprintf("Signature expired: %s is now earlier than %s (%s - %d min.)",
			sig.at.Format(amzTime), now.Add(-maxSkew).Format(amzTime), now.Format(amzTime), int(maxSkew.Minutes()))
	case sig.at.After(now.Add(maxSkew)):
		message = fmt.Sprintf("Signature not yet current: %s is still later than %s (%s + %d min.)",
			sig.at.Format(amzTime), now.Add(maxSkew).Format(amzTime), now.Format(amzTime), int(maxSkew.Minutes()))
	default:
		return nil
	}
	switch c.Protocol {
	case api.EC2Query:
		return requestExpiredError()
	case api.AWSQuery:
		return api.Forbidden("SignatureDoesNotMatch", message)
	case api.AWSJSON10, api.AWSJSON11, api.RESTJSON:
	}
	return &failure.Error{Code: "InvalidSignatureException", Message: message}
}

func expiredError(c *api.Call) error {
	const message = "The security token included in the request is expired"
	switch c.Service {
	case "ec2":
		return requestExpiredError()
	case "ssm", "eks", "pricing", api.ShiftService:
		return &failure.Error{Code: "ExpiredTokenException", Message: message}
	}
	return api.Forbidden("ExpiredToken", message)
}

// requestExpiredError returns EC2's error both for expired keys and for a signature whose time is too far from the
// server's time.
func requestExpiredError() error {
	return &failure.Error{Code: "RequestExpired", Message: "Request has expired."}
}

// accountOf returns the account of an unknown access key: the key itself if it has 12 digits, DefaultAccount otherwise.
func accountOf(accessKey string) string {
	if len(accessKey) == 12 && strings.Trim(accessKey, "0123456789") == "" {
		return accessKey
	}
	return DefaultAccount
}

func invalidKeyError(service string) error {
	switch service {
	case "ec2":
		return &failure.Error{Code: "AuthFailure", Message: "AWS was not able to validate the provided access credentials", Status: 401}
	case "ssm", "eks", "pricing", api.ShiftService:
		return &failure.Error{Code: "UnrecognizedClientException", Message: "The security token included in the request is invalid."}
	}
	return api.Forbidden("InvalidClientTokenId", "The security token included in the request is invalid.")
}

func deniedError(c *api.Call) error {
	return api.Denial(c, "User: "+c.Caller.ARN+" is not authorized to perform: "+c.Name()+
		" on resource: * because no identity-based policy allows the "+c.Name()+" action")
}
