import { isJsonObject, type JsonObject } from '../../src/engine/json.ts'

/** What must reach no buyer: libraries, stacks, revert data, addresses of our own machines. */
const INNARDS = /viem|Error:|\bat \S+[.:]\w+:\d|node_modules|08c379a0|0x[0-9a-f]{200,}|127\.0\.0\.1|node\.go/i

/** An error body, shown to hold nothing of the service's innards; throws when it does. */
export async function readProblem(response: Response): Promise<JsonObject> {
  const text = await response.text()
  const value: unknown = JSON.parse(text)
  if (!isJsonObject(value)) throw new Error(`${response.status} carries no object: ${text}`)
  // The example program of a 402 names viem on purpose.
  const { client: _, ...said } = value
  const headers = [...response.headers].map(([, header]) => header).join('\n')
  const receipt = Buffer.from(response.headers.get('payment-response') ?? '', 'base64').toString('utf8')
  const leak = INNARDS.exec([JSON.stringify(said), headers, receipt].join('\n'))
  if (leak !== null) throw new Error(`${response.status} lets out "${leak[0]}": ${text}`)
  return value
}

/** A live document as JSON. */
export async function askJson(url: string): Promise<JsonObject> {
  const response = await fetch(url)
  const value: unknown = await response.json()
  if (response.status !== 200 || !isJsonObject(value)) throw new Error(`${url} answered ${response.status}`)
  return value as JsonObject
}
