import t from 'tap'
import { toChecksum, type Address } from '../../../../src/engine/base/address.ts'
import type {
  Facilitator,
  SupportedKind,
} from '../../../../src/engine/x402/facilitators/facilitator-client.ts'
import { PermitAccounts } from '../../../../src/engine/x402/facilitators/permit-accounts.ts'

const BASE = 'eip155:8453'
const [one, two, three] = ['1', '2', '3'].map((digit) => toChecksum(`0x${digit.repeat(40)}`)) as [
  Address,
  Address,
  Address,
]

function facilitator(url: string): Facilitator {
  const never = (): Promise<never> => Promise.reject(new Error('nobody asks it'))
  return { url, verify: never, settle: never, supported: never, bodyOf: () => '' }
}

function listed(
  by: Facilitator,
  account: Address,
  others: readonly Address[] = [],
): SupportedKind & { readonly by: Facilitator } {
  const permits = { account, accounts: [account, ...others], approvals: 'sent along' as const }
  return { x402Version: 2, scheme: 'upto', network: BASE, permits, by }
}

const [first, second] = [facilitator('https://a.example'), facilitator('https://b.example')]

t.test('offers the account of the first facilitator that lists one for the network', async (t) => {
  const accounts = new PermitAccounts(BASE)
  t.equal(accounts.note([{ x402Version: 2, scheme: 'exact', network: BASE, by: first }]), 'as before')
  t.equal(accounts.offered, undefined)
  t.equal(accounts.note([listed(first, one), listed(second, two)]), 'changed')
  t.equal(accounts.offered?.account, one)
  t.equal(new PermitAccounts('eip155:1').note([listed(first, one)]), 'as before')
})

t.test('keeps its offer while a facilitator with several accounts names them in turns', async (t) => {
  const accounts = new PermitAccounts(BASE)
  accounts.note([listed(first, one, [two])])
  t.equal(accounts.note([listed(first, two, [one])]), 'as before')
  t.equal(accounts.offered?.account, one)
  t.equal(accounts.settlerOf(two), first)
})

t.test('finishes what names an account that is listed no more', async (t) => {
  const accounts = new PermitAccounts(BASE)
  accounts.note([listed(first, one)])
  t.equal(accounts.note([listed(first, three)]), 'changed')
  t.equal(accounts.offered?.account, three)
  t.equal(accounts.settlerOf(one), first)
})

t.test('takes another facilitator when one is not trusted any more', async (t) => {
  const accounts = new PermitAccounts(BASE)
  accounts.note([listed(first, one), listed(second, two)])
  accounts.distrust(first)
  t.equal(accounts.settlerOf(one), undefined)
  t.equal(accounts.note([listed(first, one), listed(second, two)]), 'changed')
  t.equal(accounts.offered?.account, two)
  t.equal(accounts.note([listed(first, one)]), 'changed')
  t.equal(accounts.offered, undefined)
})
