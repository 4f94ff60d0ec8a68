{{/* Values of Karpenter's charts before 1.0 are ignored, as by its chart since, and reported; "leftovers" of values.rules.json has what takes
their place. Only the cluster's name is used, where settings.clusterName is not set: without it nothing works. */}}

{{/* Something, if the "value" at a "path" is such a value, or a map of such values alone. */}}
{{- define "joiner.leftover" -}}
{{- if hasKey .rules.leftovers .path -}}
yes
{{- else if and (kindIs "map" .value) .value -}}
{{- $all := "yes" -}}
{{- range $key, $item := .value -}}
{{- if not (include "joiner.leftover" (dict "value" $item "path" (printf "%s.%s" $.path $key) "rules" $.rules)) -}}{{- $all = "" -}}{{- end -}}
{{- end -}}
{{- $all -}}
{{- end -}}
{{- end -}}

{{/* A line for each leftover among the values: "settings.aws.clusterName is ignored: set settings.clusterName". */}}
{{- define "joiner.leftovers" -}}
{{- $rules := .Files.Get "values.rules.json" | fromJson -}}
{{- $lines := list -}}
{{- range $path := keys $rules.leftovers | sortAlpha -}}
{{- $at := $.Values -}}
{{- range $key := splitList "." $path -}}
{{- $at = kindIs "map" $at | ternary (get ($at | default dict) $key) "" -}}
{{- end -}}
{{- if $at -}}
{{- $lines = append $lines (printf "%s is ignored: %s" $path (get $rules.leftovers $path)) -}}
{{- end -}}
{{- end -}}
{{- if and (not .Values.settings.clusterName) (include "joiner.clusterName" .) -}}
{{- $lines = append $lines (printf "settings.clusterName is not set: %s is used, which an older value names" (include "joiner.clusterName" .)) -}}
{{- end -}}
{{- join "\n" $lines -}}
{{- end -}}

{{/* The name of the cluster. */}}
{{- define "joiner.clusterName" -}}
{{- $old := list -}}
{{- if kindIs "string" .Values.clusterName -}}{{- $old = append $old .Values.clusterName -}}{{- end -}}
{{- if kindIs "map" .Values.settings.aws -}}{{- with .Values.settings.aws.clusterName -}}{{- $old = append $old . -}}{{- end -}}{{- end -}}
{{- $old = $old | uniq | compact -}}
{{- if .Values.settings.clusterName -}}
{{- .Values.settings.clusterName -}}
{{- else if eq (len $old) 1 -}}
{{- first $old -}}
{{- end -}}
{{- end -}}
