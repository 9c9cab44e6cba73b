import type { Json } from '../../engine/index.ts'

/** An answer, read to its end. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: Json
}

/** Asks once; undefined when no answer has come back. */
export async function request(
  url: URL,
  payment: Readonly<Record<string, string>>,
): Promise<Answer | undefined> {
  const headers = { accept: 'application/json', ...payment }
  try {
    // A redirect would take a signed payment to somebody else.
    const response = await fetch(url, { headers, redirect: 'manual', signal: AbortSignal.timeout(60_000) })
    return { status: response.status, headers: response.headers, body: readJson(await response.text()) }
  } catch {
    return undefined
  }
}

function readJson(text: string): Json {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
