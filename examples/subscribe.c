/* Print the highest bin of every spectrum, and what was missed on the way.
 *
 *   cc -std=c11 -O2 -Wall -Wextra -o subscribe subscribe.c $(pkg-config --cflags --libs libzmq jansson) -lm
 *   ./subscribe [--json] [--count N] [--key ME.key --server-key BOX.pub] [ENDPOINT [PREFIX]]
 *   ./subscribe --check ../tests/data/golden_v1.json
 *
 * Needs libzmq and jansson (Debian: libzmq3-dev libjansson-dev); it follows docs/protocol.md. The
 * daemon may start later, end and come back.
 */

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

enum { SILENCE_MS = 3000, KEY_CHARS = 40, TOPICS_MAX = 65536 };

struct message {
    char topic[256];
    json_t *header;
    double *values; /* NULL where there is no payload, as in a heartbeat */
    size_t count;
    bool is_double;
    int64_t missed;
    bool restarted;
};

struct seen {
    char topic[256];
    int64_t epoch, seq;
};

static _Noreturn void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("subscribe: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(2);
}

static void *must(void *memory)
{
    if (memory == NULL)
        fail("out of memory");
    return memory;
}

/* --- decoding: false where a message breaks the protocol, with a line on standard error */

static bool refuse(const char *topic, const char *rule)
{
    fprintf(stderr, "left out: %s: %s\n", topic, rule);
    return false;
}

/* An integer field of a header; what is absent has a default. */
static int64_t integer(const json_t *header, const char *name, int64_t absent)
{
    const json_t *value = json_object_get(header, name);
    return json_is_integer(value) ? json_integer_value(value) : absent;
}

static double number(const json_t *header, const char *name)
{
    return json_number_value(json_object_get(header, name));
}

/* Little-endian IEEE 754 of 4 or 8 bytes, on any machine. */
static double read_value(const unsigned char *bytes, size_t size)
{
    uint64_t bits = 0;
    for (size_t k = size; k-- > 0;)
        bits = bits << 8 | bytes[k];
    if (size == 4) {
        const uint32_t bits32 = (uint32_t)bits;
        float value;
        memcpy(&value, &bits32, sizeof value);
        return value;
    }
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static bool decode_values(struct message *message, const unsigned char *payload, size_t n_bytes)
{
    const json_t *shape = json_object_get(message->header, "shape");
    const char *dtype = json_string_value(json_object_get(message->header, "dtype"));
    if (dtype == NULL || (strcmp(dtype, "<f4") != 0 && strcmp(dtype, "<f8") != 0))
        return refuse(message->topic, "dtype must be <f4 or <f8");
    if (json_array_size(shape) != 1 || !json_is_integer(json_array_get(shape, 0)))
        return refuse(message->topic, "shape must be one number");
    message->is_double = dtype[2] == '8';
    const size_t size = message->is_double ? 8 : 4;
    message->count = n_bytes / size;
    if (n_bytes % size != 0
        || (json_int_t)message->count != json_integer_value(json_array_get(shape, 0)))
        return refuse(message->topic, "the payload's size must be that of dtype and shape");
    if (strncmp(message->topic, "spec/", 5) == 0) {
        const int64_t nfft = integer(message->header, "nfft", -1);
        const bool two_sided = integer(message->header, "first_bin", 0) != 0;
        if (nfft < 1 || (int64_t)message->count != (two_sided ? nfft : nfft / 2 + 1))
            return refuse(message->topic, "shape must be nfft // 2 + 1, two-sided nfft");
    }
    message->values = must(malloc(message->count * sizeof *message->values + 1));
    for (size_t k = 0; k < message->count; k++)
        message->values[k] = read_value(payload + k * size, size);
    return true;
}

static void clear(struct message *message)
{
    json_decref(message->header);
    free(message->values);
    *message = (struct message){0};
}

/* Fills a message, which is to be cleared whatever is returned. Payload may be NULL. */
static bool decode(struct message *message, const void *topic, size_t topic_bytes,
                   const void *header, size_t header_bytes, const void *payload, size_t n_bytes)
{
    *message = (struct message){0};
    if (topic_bytes >= sizeof message->topic)
        return refuse("topic", "must be shorter than 256 bytes");
    memcpy(message->topic, topic, topic_bytes);
    json_error_t error;
    /* Integers have 64 bits here, as t_utc_ns needs them. */
    message->header = json_loadb(header, header_bytes, JSON_ALLOW_NUL, &error);
    if (!json_is_object(message->header))
        return refuse(message->topic, message->header == NULL ? error.text : "must be an object");
    if (integer(message->header, "v", -1) != 1)
        return refuse(message->topic, "v must be 1");
    if (integer(message->header, "seq", -1) < 0 || integer(message->header, "epoch", -1) < 0)
        return refuse(message->topic, "seq and epoch must be integers from 0 on");
    if (json_object_get(message->header, "shape") == NULL)
        return true;
    if (payload == NULL)
        return refuse(message->topic, "the payload is missing");
    return decode_values(message, payload, n_bytes);
}

/* --- what was lost */

static struct seen *last_seen;
static size_t n_seen;

static void compare(struct message *message)
{
    const int64_t seq = integer(message->header, "seq", 0);
    const int64_t epoch = integer(message->header, "epoch", 0);
    size_t at = 0;
    while (at < n_seen && strcmp(last_seen[at].topic, message->topic) != 0)
        at++;
    if (at == n_seen) { /* a late subscriber has missed nothing */
        if (n_seen == TOPICS_MAX)
            fail("more than %d topics", TOPICS_MAX);
        last_seen = must(realloc(last_seen, (n_seen + 1) * sizeof *last_seen));
        last_seen[n_seen++] = (struct seen){.epoch = epoch, .seq = seq - 1};
        memcpy(last_seen[at].topic, message->topic, sizeof message->topic);
    }
    message->restarted = last_seen[at].epoch != epoch;
    if (!message->restarted && seq > last_seen[at].seq)
        message->missed = seq - last_seen[at].seq - 1;
    last_seen[at].epoch = epoch;
    last_seen[at].seq = seq;
}

/* --- output */

static void print_json(const struct message *message)
{
    json_t *topic = must(json_string(message->topic));
    char *topic_text = must(json_dumps(topic, JSON_ENCODE_ANY));
    char *header_text = must(json_dumps(message->header, JSON_COMPACT | JSON_REAL_PRECISION(17)));
    printf("{\"topic\":%s,\"header\":%s,\"values\":", topic_text, header_text);
    free(header_text);
    free(topic_text);
    json_decref(topic);
    for (size_t k = 0; k < message->count; k++) {
        fputs(k == 0 ? "[" : ",", stdout);
        if (isfinite(message->values[k]))
            printf("%.*g", message->is_double ? 17 : 9, message->values[k]);
        else
            fputs("null", stdout); /* JSON has no number for it */
    }
    fputs(message->values == NULL ? "null" : message->count == 0 ? "[]" : "]", stdout);
    printf(",\"missed\":%" PRId64 ",\"restarted\":%s}\n", message->missed,
           message->restarted ? "true" : "false");
    fflush(stdout);
}

static void show(const struct message *message)
{
    const json_t *header = message->header;
    if (message->restarted)
        fprintf(stderr, "%s the daemon was restarted\n", message->topic);
    if (message->missed > 0)
        fprintf(stderr, "%s %" PRId64 " missed before seq %" PRId64 "\n", message->topic,
                message->missed, integer(header, "seq", 0));
    if (strncmp(message->topic, "spec/", 5) != 0)
        return;
    if (integer(header, "gap_samples", 0) > 0)
        fprintf(stderr, "%s gap of %" PRId64 " samples\n", message->topic,
                integer(header, "gap_samples", 0));
    size_t highest = 0;
    for (size_t k = 1; k < message->count; k++)
        if (message->values[k] > message->values[highest])
            highest = k;
    const double bin = (double)(integer(header, "first_bin", 0) + (int64_t)highest);
    const double offset = bin * number(header, "fs") / (double)integer(header, "nfft", 1);
    const double hertz = number(header, "center_frequency_hz") + offset; /* 0 where absent */
    const char *unit = json_string_value(json_object_get(header, "unit"));
    printf("%s %.1f Hz %.2f %s\n", message->topic, hertz, message->values[highest],
           unit == NULL ? "" : unit);
    fflush(stdout);
}

/* --- golden messages */

static int hex_digit(char c)
{
    const char digits[] = "0123456789abcdef";
    const char *found = memchr(digits, c, 16);
    if (found == NULL)
        fail("%c: is not a digit of a hexadecimal number", c);
    return (int)(found - digits);
}

static void check(const char *path)
{
    json_error_t error;
    json_t *golden_messages = json_load_file(path, 0, &error);
    if (golden_messages == NULL)
        fail("%s: %s", path, error.text);
    size_t index;
    json_t *golden;
    json_array_foreach(golden_messages, index, golden)
    {
        const char *topic = json_string_value(json_object_get(golden, "topic"));
        const char *header = json_string_value(json_object_get(golden, "header"));
        const char *hex = json_string_value(json_object_get(golden, "payload_hex"));
        if (topic == NULL || header == NULL)
            fail("%s: message %zu: must have topic and header", path, index);
        const size_t n_bytes = hex == NULL ? 0 : strlen(hex) / 2;
        unsigned char *payload = hex == NULL ? NULL : must(malloc(n_bytes + 1));
        for (size_t k = 0; k < n_bytes; k++)
            payload[k] = (unsigned char)(hex_digit(hex[2 * k]) << 4 | hex_digit(hex[2 * k + 1]));
        struct message message;
        if (!decode(&message, topic, strlen(topic), header, strlen(header), payload, n_bytes))
            fail("%s: message %zu is not understood", path, index);
        print_json(&message);
        clear(&message);
        free(payload);
    }
    json_decref(golden_messages);
}

/* --- the network */

/* Takes a key out of a file of `spectrod keys new`: a line NAME = "40 characters". */
static void read_key(const char *path, const char *name, char key[KEY_CHARS + 1])
{
    FILE *file = fopen(path, "r");
    if (file == NULL)
        fail("%s: %s", path, strerror(errno));
    char line[1024], found[32];
    bool is_found = false;
    while (!is_found && fgets(line, sizeof line, file) != NULL)
        is_found = sscanf(line, "%31[a-z_] = \"%40[^\"]", found, key) == 2
                   && strcmp(found, name) == 0 && strlen(key) == KEY_CHARS;
    fclose(file);
    if (!is_found)
        fail("%s: has no %s", path, name);
}

static void set_int(void *socket, int option, int value)
{
    if (zmq_setsockopt(socket, option, &value, sizeof value) != 0)
        fail("socket option %d: %s", option, zmq_strerror(errno));
}

static void set_text(void *socket, int option, const char *text)
{
    if (zmq_setsockopt(socket, option, text, strlen(text)) != 0)
        fail("socket option %d: %s", option, zmq_strerror(errno));
}

static void use_keys(void *socket, const char *mine, const char *servers)
{
    char key[KEY_CHARS + 1] = "";
    read_key(mine, "public_key", key);
    set_text(socket, ZMQ_CURVE_PUBLICKEY, key);
    read_key(mine, "secret_key", key);
    set_text(socket, ZMQ_CURVE_SECRETKEY, key);
    read_key(servers, "public_key", key);
    set_text(socket, ZMQ_CURVE_SERVERKEY, key);
}

/* One message of any number of parts, of which the first three count; false if none came in time. */
static bool receive(void *socket, zmq_msg_t parts[3], size_t *n_parts)
{
    *n_parts = 0;
    for (bool more = true; more;) {
        zmq_msg_t part;
        zmq_msg_init(&part);
        if (zmq_msg_recv(&part, socket, 0) < 0) {
            if (errno == EINTR)
                continue;
            if (errno == EAGAIN)
                return false; /* of a message, all parts have come or none */
            fail("receive: %s", zmq_strerror(errno));
        }
        more = zmq_msg_more(&part) != 0;
        if (*n_parts < 3) {
            zmq_msg_init(&parts[*n_parts]);
            zmq_msg_move(&parts[(*n_parts)++], &part);
        }
        zmq_msg_close(&part);
    }
    return true;
}

static bool decode_parts(struct message *message, zmq_msg_t parts[3], size_t n_parts)
{
    *message = (struct message){0};
    if (n_parts < 2)
        return refuse("message", "must have two parts or more");
    const bool has_payload = n_parts > 2;
    return decode(message, zmq_msg_data(&parts[0]), zmq_msg_size(&parts[0]),
                  zmq_msg_data(&parts[1]), zmq_msg_size(&parts[1]),
                  has_payload ? zmq_msg_data(&parts[2]) : NULL,
                  has_payload ? zmq_msg_size(&parts[2]) : 0);
}

struct options {
    const char *endpoint, *prefix, *check, *key, *server_key;
    long count;
    bool json;
};

static void watch(void *socket, const struct options *options)
{
    for (long spectra = 0; options->count == 0 || spectra < options->count;) {
        zmq_msg_t parts[3];
        size_t n_parts;
        if (!receive(socket, parts, &n_parts)) {
            fprintf(stderr, "nothing from %s for %d s\n", options->endpoint, SILENCE_MS / 1000);
            continue;
        }
        struct message message;
        if (decode_parts(&message, parts, n_parts)) {
            compare(&message);
            if (options->json)
                print_json(&message);
            else
                show(&message);
            spectra += strncmp(message.topic, options->prefix, strlen(options->prefix)) == 0;
        }
        clear(&message);
        for (size_t k = 0; k < n_parts; k++)
            zmq_msg_close(&parts[k]);
    }
}

static struct options read_options(int argc, char **argv)
{
    struct options options = {.endpoint = "tcp://127.0.0.1:5556", .prefix = "spec/"};
    int n_plain = 0;
    for (int k = 1; k < argc; k++) {
        const char *value = k + 1 < argc ? argv[k + 1] : NULL;
        if (strcmp(argv[k], "--json") == 0)
            options.json = true;
        else if (strcmp(argv[k], "--count") == 0 && value != NULL)
            options.count = strtol(argv[++k], NULL, 10);
        else if (strcmp(argv[k], "--check") == 0 && value != NULL)
            options.check = argv[++k];
        else if (strcmp(argv[k], "--key") == 0 && value != NULL)
            options.key = argv[++k];
        else if (strcmp(argv[k], "--server-key") == 0 && value != NULL)
            options.server_key = argv[++k];
        else if (argv[k][0] == '-' || n_plain == 2)
            fail("%s: see the head of subscribe.c for what may be given", argv[k]);
        else if (n_plain++ == 0)
            options.endpoint = argv[k];
        else
            options.prefix = argv[k];
    }
    return options;
}

int main(int argc, char **argv)
{
    const struct options options = read_options(argc, argv);
    if (options.check != NULL) {
        check(options.check);
        return 0;
    }
    void *context = must(zmq_ctx_new());
    void *socket = must(zmq_socket(context, ZMQ_SUB));
    set_int(socket, ZMQ_LINGER, 0);
    set_int(socket, ZMQ_IPV6, strchr(options.endpoint, '[') != NULL);
    set_int(socket, ZMQ_RCVTIMEO, SILENCE_MS); /* a daemon says something each second */
    /* ZeroMQ connects again by itself, as often as it takes; and notices a cable that was pulled. */
    set_int(socket, ZMQ_RECONNECT_IVL, 100);
    set_int(socket, ZMQ_TCP_KEEPALIVE, 1);
    set_int(socket, ZMQ_TCP_KEEPALIVE_IDLE, 2);
    set_int(socket, ZMQ_TCP_KEEPALIVE_INTVL, 2);
    set_int(socket, ZMQ_TCP_KEEPALIVE_CNT, 2);
    if (options.key != NULL && options.server_key != NULL)
        use_keys(socket, options.key, options.server_key);
    /* hb/ beats each second: silence is then not mistaken for death. meta/ says what values mean. */
    set_text(socket, ZMQ_SUBSCRIBE, options.prefix);
    set_text(socket, ZMQ_SUBSCRIBE, "hb/");
    if (options.json)
        set_text(socket, ZMQ_SUBSCRIBE, "meta/");
    if (zmq_connect(socket, options.endpoint) != 0)
        fail("%s: %s", options.endpoint, zmq_strerror(errno));
    watch(socket, &options);
    zmq_close(socket);
    zmq_ctx_term(context);
    free(last_seen);
    return 0;
}
