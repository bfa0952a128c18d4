export type ConfigErrorCode = 'NOT_LOADED' | 'CONFIG_CONFLICT' | 'NO_SUCH_VERSION';

/** What a configuration store could not do, and what to do about it. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly code: ConfigErrorCode;

  constructor(code: ConfigErrorCode, why: string, options?: ErrorOptions) {
    super(`${code}: ${why}`, options);
    this.code = code;
  }
}
