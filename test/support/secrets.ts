import { isJsonObject } from '../../src/engine/json.ts'

/** What the work of `fixtures/payments` answers, in every form. */
const WORTH = /worth-\d+/

/** What must stand in no log line and in no error body: gathered while tests run, looked for at their end. */
export class Secrets {
  readonly #kept = new Map<string, string>()
  readonly #heard: string[] = []

  /** `what` names it in a failure, which must not show it either. */
  keep(what: string, secret: string): void {
    if (secret.length > 0) this.#kept.set(secret, what)
  }

  /** What a PAYMENT-SIGNATURE carries, or an Authorization of MPP. */
  keepHeader(header: string): void {
    const encoded = header.replace(/^Payment /, '')
    const text = Buffer.from(encoded, 'base64').toString('utf8')
    this.keep('a payment header', encoded)
    this.keep('a signature', /"signature":"0x([^"]+)"/.exec(text)?.[1] ?? '')
    this.keep('a token of redelivery', /"token":"([^"]+)"/.exec(text)?.[1] ?? '')
  }

  /** The answer to a request that carried a payment, when it is not what was bought. */
  async hear(response: Response): Promise<string> {
    const body = await response.text()
    if (response.status === 200) return body
    this.listen(
      [body, ...[...response.headers].map(([name, value]) => `${name}: ${readable(value)}`)].join('\n'),
    )
    return body
  }

  /** Whatever somebody else may read: log lines, error bodies. */
  listen(text: string): void {
    this.#heard.push(text)
  }

  /** What has come out, without showing it. */
  leaked(): string[] {
    const text = this.#heard.join('\n')
    const known = [...this.#kept].flatMap(([secret, what]) => (text.includes(secret) ? [what] : []))
    return WORTH.test(text) ? [...known, 'a stored value'] : known
  }
}

/** Headers of payments are base64 of JSON: what is in them can be read. */
function readable(value: string): string {
  const text = Buffer.from(value, 'base64').toString('utf8')
  try {
    return isJsonObject(JSON.parse(text)) ? `${value} ${text}` : value
  } catch {
    return value
  }
}
