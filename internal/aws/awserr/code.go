package awserr

import (
	"slices"
	"strings"
)

// verdict is the classification of an AWS error code.
type verdict struct {
	kind   Kind   // Error.Kind
	reason string // Error.Reason
	hint   string // Error.Hint; empty: none
}

// verdictOfCode classifies an error code; false if the code is not known. The codes are from the EC2, IAM, EKS, SSM,
// STS and Pricing API references. Where Karpenter has a reason for the code, Joiner has the same, so that alerts keep
// working.
func verdictOfCode(code string) (verdict, bool) {
	for _, group := range groups() {
		if slices.Contains(group.codes, code) {
			return group.verdict, true
		}
	}
	return verdict{}, false
}

type group struct {
	codes []string
	verdict
}

func groups() []group {
	return slices.Concat(shortages(), denials(), mistakes(), serviceErrors())
}

// shortages returns the codes after which another offering or subnet may succeed.
func shortages() []group {
	return []group{
		{[]string{"InsufficientInstanceCapacity", "UnfulfillableCapacity", "InsufficientHostCapacity", "InsufficientReservedInstanceCapacity",
			"ReservationCapacityExceeded", "InsufficientCapacity", "InsufficientCapacityOnHost", "InsufficientVolumeCapacity",
			"InsufficientAddressCapacity"},
			verdict{Shortage, "InsufficientCapacity", ""}},
		{[]string{"Unsupported", "UnsupportedOperation", "VolumeTypeNotAvailableInZone", "VolumeTypeNotAvailableInRegion"},
			verdict{Shortage, "Unsupported", ""}},
		{[]string{"InsufficientFreeAddressesInSubnet"},
			verdict{Shortage, "InsufficientFreeAddressesInSubnet", "give the subnet more addresses, or select more subnets"}},
		{[]string{"VcpuLimitExceeded", "InstanceLimitExceeded"},
			verdict{Shortage, "VCPULimitExceeded", "raise the vCPU quota of this instance family in Service Quotas"}},
		{[]string{"SpotMaxPriceTooLow"},
			verdict{Shortage, "SpotPriceTooLow", ""}},
		{[]string{"MaxSpotInstanceCountExceeded"},
			verdict{Shortage, "SpotQuotaExceeded", "raise the spot vCPU quota in Service Quotas"}},
		{[]string{"MaxFleetCountExceeded", "MaxSpotFleetRequestCountExceeded"},
			verdict{Shortage, "FleetQuotaExceeded", "raise the quota of fleets in Service Quotas"}},
	}
}

// denials returns the codes for missing permissions, for invalid credentials, and for accounts that AWS restricts.
func denials() []group {
	return []group{
		{[]string{"AuthFailure.ServiceLinkedRoleCreationNotPermitted"},
			verdict{Denied, "SpotSLRCreationFailed", "run: aws iam create-service-linked-role --aws-service-name spot.amazonaws.com"}},
		{[]string{"UnauthorizedOperation", "AccessDenied", "AccessDeniedException", "Client.UnauthorizedOperation", "NotAuthorized",
			"Forbidden", "UnauthorizedException"},
			verdict{Denied, "Unauthorized", ""}},
		{[]string{"AuthFailure", "InvalidClientTokenId", "UnrecognizedClientException", "SignatureDoesNotMatch", "IncompleteSignature",
			"MissingAuthenticationToken", "InvalidToken", "InvalidAccessKeyId"},
			verdict{Denied, "InvalidCredentials", "the credentials are not valid in this account and region"}},
		{[]string{"ExpiredToken", "ExpiredTokenException", "RequestExpired", "RequestTimeTooSkewed", "InvalidSignatureException"},
			verdict{Denied, "ExpiredCredentials", "the credentials have expired, or the clock of this computer is wrong"}},
		{[]string{"OptInRequired", "InvalidRegionException"},
			verdict{Denied, "RegionNotEnabled", "enable the region for the account"}},
		{[]string{"PendingVerification"},
			verdict{Denied, "AccountPendingVerification", "AWS is still verifying the account for this region; wait up to four hours"}},
		{[]string{"Blocked"},
			verdict{Denied, "AccountBlocked", "the account is blocked; contact AWS support"}},
	}
}

// mistakes returns the codes of requests that name a wrong or missing object, that exceed a quota not in shortages, or
// that use a client token again.
func mistakes() []group {
	return []group{
		{[]string{"InvalidAMIID.Malformed", "InvalidAMIID.Unavailable"},
			verdict{Misconfigured, "InvalidAMIID", "correct spec.amiSelectorTerms of the EC2NodeClass"}},
		{[]string{"InvalidAMIID.NotFound"},
			verdict{Misconfigured, "AMINotFound", "the image is gone or not shared with this account: correct spec.amiSelectorTerms of the EC2NodeClass"}},
		{[]string{"InvalidLaunchTemplateName.NotFoundException", "InvalidLaunchTemplateId.NotFound", "InvalidLaunchTemplateId.VersionNotFound"},
			verdict{Transient, "LaunchTemplateNotFound", ""}}, // Joiner creates the template again
		{[]string{"InvalidSubnetID.NotFound", "InvalidSubnet"},
			verdict{Misconfigured, "SubnetNotFound", "correct spec.subnetSelectorTerms of the EC2NodeClass"}},
		{[]string{"InvalidGroup.NotFound", "InvalidSecurityGroupID.NotFound", "InvalidGroupId.Malformed"},
			verdict{Misconfigured, "SecurityGroupNotFound", "correct spec.securityGroupSelectorTerms of the EC2NodeClass"}},
		{[]string{"InvalidKMSKey.InvalidState", "InvalidKmsKey.InvalidState", "Client.InvalidKMSKey.InvalidState"},
			verdict{Misconfigured, "KMSKeyUnusable", "enable the key, and let the spot or EC2 service role use it"}},
		{[]string{"InvalidBlockDeviceMapping", "InvalidSnapshot.NotFound", "InvalidSnapshotID.Malformed",
			"InvalidVolume.ZoneMismatch", "InvalidDevice.InUse",
			"MaxIOPSLimitExceeded", "UnknownVolumeType"},
			verdict{Misconfigured, "BlockDeviceMappingInvalid", "correct spec.blockDeviceMappings of the EC2NodeClass"}},
		{[]string{"InvalidPlacementGroup.Unknown", "InvalidPlacementGroupId.Malformed", "PlacementGroupLimitExceeded"},
			verdict{Misconfigured, "PlacementGroupNotFound", "correct spec.placementGroupSelector of the EC2NodeClass"}},
		{[]string{"InvalidIamInstanceProfileArn.Malformed", "InvalidInstanceProfile.NotFound"},
			verdict{Misconfigured, "InstanceProfileNotFound", "correct spec.instanceProfile of the EC2NodeClass"}},
		{[]string{"InvalidUserData.Malformed"},
			verdict{Misconfigured, "UserDataInvalid", "correct spec.userData of the EC2NodeClass"}},
		{[]string{"InvalidTag.Malformed", "InvalidTagKey.Malformed", "TagLimitExceeded", "TagPolicyViolation"},
			verdict{Misconfigured, "TagValidationFailed", "correct spec.tags of the EC2NodeClass"}},
		{[]string{"VolumeLimitExceeded", "SnapshotLimitExceeded", "NetworkInterfaceLimitExceeded", "AddressLimitExceeded",
			"LaunchTemplateLimitExceeded", "InvalidLaunchTemplateNumber.LimitExceeded"},
			verdict{Misconfigured, "QuotaExceeded", "raise the quota in Service Quotas, or remove what is no longer used"}},
		{[]string{"OperationNotPermitted"},
			verdict{Misconfigured, "OperationNotPermitted", "the instance may be protected from termination: aws ec2 modify-instance-attribute --no-disable-api-termination"}},
		{[]string{"LimitExceeded", "LimitExceededException", "ResourceLimitExceeded"},
			verdict{Misconfigured, "QuotaExceeded", "raise the quota, or remove what is no longer used"}},
		{[]string{"IdempotentParameterMismatch", "InvalidClientToken", "IdempotentParameterMismatchException"},
			verdict{InDoubt, "TokenSpent", ""}},
	}
}

// serviceErrors returns the codes of missing resources, of throttling and of failures of AWS.
func serviceErrors() []group {
	return []group{
		{[]string{"InvalidInstanceID.NotFound", "NoSuchEntity", "ParameterNotFound", "ParameterVersionNotFound", "ResourceNotFoundException",
			"NotFoundException", "QueueDoesNotExist", "InvalidCapacityReservationId.NotFound"},
			verdict{Gone, "NotFound", ""}},
		{[]string{"RequestLimitExceeded", "Throttling", "ThrottlingException", "ThrottledException", "TooManyRequestsException",
			"RequestThrottled", "RequestThrottledException", "SlowDown", "BandwidthLimitExceeded", "PriorRequestNotComplete",
			"EC2ThrottledException", "ProvisionedThroughputExceededException"},
			verdict{Throttled, "RequestLimitExceeded", ""}},
		{[]string{"InternalError", "InternalFailure", "InternalServerError", "ServerInternal", "ServiceUnavailable", "Unavailable",
			"ServiceUnavailableException", "ServerException", "RequestTimeout", "RequestTimeoutException",
			"ServiceFailure", "ConcurrentModification"},
			verdict{Transient, "InternalError", ""}},
	}
}

// classifyResponse sets Kind, Reason and Hint. It uses the first of these that classifies the error: Message, Code, and
// the HTTP status. status is 0 if there is no HTTP status.
func (e *Error) classifyResponse(status int) {
	code := strings.TrimPrefix(strings.TrimPrefix(e.Code, "Client."), "Server.")
	if v, ok := verdictOfMessage(code, e.Message); ok {
		e.Kind, e.Reason, e.Hint = v.kind, v.reason, v.hint
		return
	}
	if v, ok := verdictOfCode(code); ok {
		e.Kind, e.Reason, e.Hint = v.kind, v.reason, v.hint
		if e.Reason == "Unauthorized" {
			e.Hint = denialHint(e.Message)
		}
		return
	}
	switch {
	case strings.HasSuffix(code, ".NotFound"), strings.HasSuffix(code, ".NotFoundException"):
		e.Kind, e.Reason = Gone, "NotFound"
	case status >= 500:
		e.Kind, e.Reason = Transient, "InternalError"
	case status == 429:
		e.Kind, e.Reason = Throttled, "RequestLimitExceeded"
	default:
		e.Kind, e.Reason = Misconfigured, strings.ReplaceAll(code, ".", "")
	}
}

// verdictOfMessage classifies errors by the text of EC2's message, where EC2 uses one code for several errors. It
// returns false for all other errors, which are classified by their code.
func verdictOfMessage(code, message string) (verdict, bool) {
	m := strings.ToLower(message)
	has := func(words ...string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(m, w) })
	}
	switch {
	case has("user data is limited to"):
		return verdict{Misconfigured, "UserDataSizeLimitExceeded",
			"shorten spec.userData of the EC2NodeClass: EC2 takes 16384 bytes in all"}, true
	case has("security group", "different vpc"), has("security group", "different network"), has("security group", "belong to different"):
		return verdict{Misconfigured, "SecurityGroupSubnetVPCMismatch", "select subnets and security groups of one VPC in the EC2NodeClass"}, true
	case has("invalid iam instance profile"), has("has no associated iam roles"):
		return verdict{Transient, "InstanceProfileNameInvalid",
			"IAM takes some seconds to show a new profile; if this error persists, check spec.instanceProfile"}, true
	case has("not eligible for free tier"):
		return verdict{Misconfigured, "FreeTierIneligible",
			"the account's plan allows only free-tier instance types: narrow the NodePool, or upgrade the plan"}, true
	case code == "OptInRequired" && has("marketplace"):
		return verdict{Denied, "MarketplaceSubscriptionMissing",
			"accept the terms of the product for this account, or select another image"}, true
	case has("not authorized for images"):
		return verdict{Denied, "AMIAuthorizationFailure", "share the image with this account, or select another"}, true
	case has("pending verification"):
		return verdict{Denied, "AccountPendingVerification", "AWS is still verifying the account for this region; wait up to four hours"}, true
	case has("architecture", "does not match the architecture"):
		return verdict{Misconfigured, "ArchitectureMismatch", "select an image for this architecture in spec.amiSelectorTerms, or narrow kubernetes.io/arch in the NodePool"}, true
	case has("spread placement group"):
		return verdict{Shortage, "SpreadPlacementGroupFull", "a spread placement group holds 7 running instances in a zone: add zones, or select another group for some of the nodes"}, true
	case has("requested configuration is currently not supported"), has("not supported in your requested availability zone"):
		return verdict{Shortage, "Unsupported", ""}, true
	case code == "InvalidParameterValue" && has("instance type", "does not support"):
		return verdict{Shortage, "Unsupported", ""}, true
	}
	return verdict{}, false
}

// denialHint returns the hint for the kind of policy that denied the call. IAM's message names the kind.
func denialHint(message string) string {
	m := strings.ToLower(message)
	switch {
	case strings.Contains(m, "service control policy"):
		return "a service control policy of the organization forbids the call: ask its administrator"
	case strings.Contains(m, "permissions boundary"):
		return "the permissions boundary of the controller's role forbids the call: extend the boundary"
	case strings.Contains(m, "explicit deny"):
		return "a policy denies the call explicitly: remove the deny, or exempt the controller's role"
	case strings.Contains(m, "no identity-based policy"):
		return "add the action to the policy of the controller's role"
	}
	return "allow the action in the policy of the controller's role"
}
