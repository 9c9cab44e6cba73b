import {
  countrySpecs,
  electronicFormatIBAN,
  extractIBAN,
  friendlyFormatIBAN,
  validateIBAN,
  ValidationErrorsIBAN,
} from 'ibantools'
import type { ExtractIBANResult } from 'ibantools'
import type { JsonObject } from 'ratecard/handler'

const ERRORS: Readonly<Record<ValidationErrorsIBAN, string>> = {
  [ValidationErrorsIBAN.NoIBANProvided]: 'empty',
  [ValidationErrorsIBAN.NoIBANCountry]: 'unknown_country',
  [ValidationErrorsIBAN.WrongBBANLength]: 'wrong_length',
  [ValidationErrorsIBAN.WrongBBANFormat]: 'wrong_format',
  [ValidationErrorsIBAN.ChecksumNotNumber]: 'checksum_not_numeric',
  [ValidationErrorsIBAN.WrongIBANChecksum]: 'wrong_checksum',
  [ValidationErrorsIBAN.WrongAccountBankBranchChecksum]: 'wrong_account_checksum',
  [ValidationErrorsIBAN.QRIBANNotAllowed]: 'qr_iban_not_allowed',
}

/** In SEPA since 2024 and 2025 (EPC409-09), which the table of the library does not say. */
const JOINED_SEPA: ReadonlySet<string> = new Set(['AL', 'MD', 'ME', 'MK', 'RS'])

/**
 * Checks an IBAN (ISO 13616) against the length, the pattern and both check digits of its country, and takes it apart.
 * Whether the account exists is not known.
 */
export function checkIban(input: string): JsonObject {
  const iban = electronicFormatIBAN(input) ?? ''
  const { valid, errorCodes } = validateIBAN(iban)
  const parts = valid ? extractIBAN(iban) : undefined
  const country = iban.slice(0, 2)
  const known = Object.hasOwn(countrySpecs, country) ? countrySpecs[country] : undefined
  // the table also lists countries that have no IBAN
  const spec = known?.chars === undefined ? undefined : known
  return {
    valid,
    country: spec === undefined ? null : country,
    check_digits: valid ? iban.slice(2, 4) : null,
    bban: parts?.bban ?? null,
    bank_code: parts?.bankIdentifier ?? null,
    branch_code: parts?.branchIdentifier ?? null,
    account_number_masked: mask(parts === undefined ? undefined : accountOf(parts)),
    sepa: spec === undefined ? null : JOINED_SEPA.has(country) || (spec.SEPA ?? false),
    formatted: valid ? friendlyFormatIBAN(iban) : null,
    errors: errorCodes.map((code) => ERRORS[code]),
  }
}

/** For some countries the account is not marked: it is then what follows bank and branch. */
function accountOf(parts: ExtractIBANResult): string | undefined {
  const { accountNumber, bban = '', bankIdentifier = '', branchIdentifier = '' } = parts
  const leading = bankIdentifier + branchIdentifier
  return (
    accountNumber ?? (leading !== '' && bban.startsWith(leading) ? bban.slice(leading.length) : undefined)
  )
}

/** For screens and logs: the last four characters. */
function mask(account: string | undefined): string | null {
  return account === undefined ? null : account.slice(-4).padStart(account.length, '*')
}
