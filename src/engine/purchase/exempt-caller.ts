import type { UntypedHandler } from '../handler.ts'

/** Who may call a paid operation without paying for the call. */
export type ExemptCaller =
  /** A customer with an API key, by the name of the key. */
  | { readonly kind: 'customer'; readonly name: string }
  /** A caller with a credential of the upstream, which alone can tell whether it is valid. */
  | {
      readonly kind: 'caller'
      /** Asks the upstream with this credential; throws `CredentialRefused`. */
      readonly handler: UntypedHandler
      /** Equal for equal credentials of one upstream. */
      readonly digest: string
    }

/** The upstream does not know the credential of the caller. */
export class CredentialRefused extends Error {
  constructor() {
    super('the upstream does not accept the credential of this request')
    this.name = 'CredentialRefused'
  }
}
