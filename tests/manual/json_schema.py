"""What the schemas of the manual use of JSON Schema."""
import re


def fits(schema, value, root):
    if "$ref" in schema:
        return fits(root["$defs"][schema["$ref"].rsplit("/", 1)[1]], value, root)
    if "anyOf" in schema:
        return any(fits(each, value, root) for each in schema["anyOf"])
    if "enum" in schema:
        return any(type(each) is type(value) and each == value for each in schema["enum"])
    kinds = {"null": type(None), "boolean": bool, "string": str, "object": dict,
             "array": list}
    kind = schema.get("type")
    if kind in ("number", "integer"):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return False
        if kind == "integer" and not isinstance(value, int):
            return False
    elif kind is not None and not isinstance(value, kinds[kind]):
        return False
    if isinstance(value, str):
        return (len(value) >= schema.get("minLength", 0) and
                re.search(schema.get("pattern", ""), value) is not None)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return schema.get("minimum", value) <= value <= schema.get("maximum", value)
    if isinstance(value, dict):
        known = schema.get("properties", {})
        return (all(name in value for name in schema.get("required", [])) and
                all(fits(known[name], each, root) for name, each in value.items() if name in known) and
                (schema.get("additionalProperties", True) or value.keys() <= known.keys()))
    return True
