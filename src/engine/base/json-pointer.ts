import { isJsonObject, type Json } from './json.ts'

/** What a JSON Pointer (RFC 6901) refers to; undefined when there is no such member. */
export function valueAt(document: Json, pointer: string): Json | undefined {
  let value: Json | undefined = document
  for (const part of pointer.split('/').slice(1)) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~')
    if (Array.isArray(value)) value = /^(?:0|[1-9]\d*)$/.test(name) ? value[Number(name)] : undefined
    else value = isJsonObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
  }
  return value
}
