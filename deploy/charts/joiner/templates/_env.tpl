{{/* joiner.env prints the settings as environment variables. It omits empty and null values, so the default of the binary applies; it prints false
and 0. It omits a setting that controller.env sets, because server-side apply refuses two variables with one name. */}}
{{- define "joiner.env" -}}
{{- $s := .Values.settings -}}
{{- $variables := list
  (list "CLUSTER_NAME" (required "settings.clusterName is not set: give the name of the EKS cluster, --set settings.clusterName=NAME" (include "joiner.clusterName" .)))
  (list "CLUSTER_ENDPOINT" $s.clusterEndpoint)
  (list "CLUSTER_CA_BUNDLE" $s.clusterCABundle)
  (list "INTERRUPTION_QUEUE" $s.interruptionQueue)
  (list "ISOLATED_VPC" $s.isolatedVPC)
  (list "BATCH_MAX_DURATION" $s.batchMaxDuration)
  (list "BATCH_IDLE_DURATION" $s.batchIdleDuration)
  (list "PREFERENCE_POLICY" $s.preferencePolicy)
  (list "MIN_VALUES_POLICY" $s.minValuesPolicy)
  (list "VM_MEMORY_OVERHEAD_PERCENT" $s.vmMemoryOverheadPercent)
  (list "RESERVED_ENIS" $s.reservedENIs)
  (list "DISABLE_DRY_RUN" $s.disableDryRun)
  (list "AMI_REFRESH_INTERVAL" $s.amiRefreshInterval)
  (list "SUBNET_REFRESH_INTERVAL" $s.subnetRefreshInterval)
  (list "SCHEDULER_CONFIG" $s.schedulerConfig)
  (list "SHORTAGE_BACKOFF" $s.shortageBackoff)
  (list "LATE_AFTER" $s.lateAfter)
  (list "EC2_API_LIMITS" $s.ec2APILimits)
  (list "BREAKER_COUNT" $s.breakerCount)
  (list "BREAKER_SHARE" $s.breakerShare)
  (list "DRIFT_BREAKER_COUNT" $s.driftBreakerCount)
  (list "DRIFT_BREAKER_SHARE" $s.driftBreakerShare)
  (list "EKS_CONTROL_PLANE" $s.eksControlPlane)
  (list "ENABLE_ZONAL_SHIFT" $s.enableZonalShift)
  (list "IGNORE_DRA_REQUESTS" $s.ignoreDRARequests)
  (list "DISABLE_CLUSTER_STATE_OBSERVABILITY" $s.disableClusterStateObservability)
  (list "FEATURE_GATES" (include "joiner.featureGates" .))
  (list "AWS_FEATURE_GATES" (ternary "NodeClassCEL=true" "" $s.awsFeatureGates.nodeClassCEL))
  (list "APPLY_CRDS" .Values.crds.apply)
  (list "METRICS_PORT" .Values.controller.metrics.port)
  (list "HEALTH_PROBE_PORT" .Values.controller.healthProbe.port)
  (list "LOG_LEVEL" .Values.logLevel)
  (list "LOG_OUTPUT_PATHS" (join "," .Values.logOutputPaths))
  (list "LOG_ERROR_OUTPUT_PATHS" (join "," .Values.logErrorOutputPaths))
-}}
{{- $inEnv := dict -}}
{{- range .Values.controller.env -}}
{{- if hasKey $inEnv .name -}}{{- fail (printf "controller.env has %s twice: remove one of them" .name) -}}{{- end -}}
{{- $_ := set $inEnv .name true -}}
{{- end -}}
{{- range $variables }}
{{- $value := kindIs "invalid" (index . 1) | ternary "" (index . 1 | toString) }}
{{- if and (ne $value "") (not (hasKey $inEnv (index . 0))) }}
- name: {{ index . 0 }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
{{- if and (dig "limits" "memory" "" (.Values.controller.resources | default dict)) (not (hasKey $inEnv "MEMORY_LIMIT")) }}
- name: MEMORY_LIMIT
  valueFrom:
    resourceFieldRef:
      containerName: {{ .Values.controller.containerName }}
      resource: limits.memory
      divisor: "0"
{{- end }}
{{- with .Values.controller.env }}
{{ toYaml . }}
{{- end }}
{{- end -}}
