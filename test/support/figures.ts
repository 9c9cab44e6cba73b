import { isJsonObject, type JsonObject } from '../../src/engine/json.ts'

/** A live document as JSON. */
export async function askJson(url: string): Promise<JsonObject> {
  const response = await fetch(url)
  const value: unknown = await response.json()
  if (response.status !== 200 || !isJsonObject(value)) throw new Error(`${url} answered ${response.status}`)
  return value as JsonObject
}
